"""Refusals of the deploy gate: builds for other devices, and code from an untrusted network."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

import msgspec

from tunegate.artifacts.measurements import Gpu
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_deploy.model_sources.fetched_model import FetchedModel

_KINDS = {"cpu": "llvm", "cuda": "cuda"}
"""The kind of a target by an artifact's device."""


def require_usable(
    config: Config, fetched: Iterable[FetchedModel], *, trust_compiled: bool
) -> Config:
    """Returns the configuration with the targets whose device the artifacts run on. Raises
    ConfigError if there is none, and for an artifact from an untrusted network."""
    for each in fetched:
        if not each.path.is_dir():
            continue
        if not (each.is_local or trust_compiled):
            message = (
                f"{each.pin.address}: an artifact with code that would run here. "
                f"Say --trust-compiled where only people you trust can write there."
            )
            raise ConfigError(message)
        config = on_device_of(config, each.pin.address, ArtifactFile.read(each.path))
    return config


def on_device_of(
    config: Config, address: str, artifact: ArtifactFile, gpus: Sequence[Gpu] | None = None
) -> Config:
    """Returns the configuration with the targets of the artifact's device. Raises ConfigError if
    there is none, or the GPU here is another than the artifact's."""
    kind = _KINDS[artifact.device]
    targets = tuple(target for target in config.targets if target.kind == kind)
    if not targets:
        names = ", ".join(target.name for target in config.targets)
        message = f"{address}: built for {artifact.device}, which is not the device of {names}."
        raise ConfigError(message)
    built_for = str(artifact.target.get("arch", ""))
    visible = visible_gpus() if gpus is None else gpus
    here = [f"sm_{gpu.compute_capability.replace('.', '')}" for gpu in visible[:1]]
    if artifact.device == "cuda" and built_for and here not in ([], [built_for]):
        message = f"{address}: built for {built_for}, and the GPU here is {here[0]}. Build it anew."
        raise ConfigError(message)
    return msgspec.structs.replace(config, targets=targets)
