"""TensorRT on NVIDIA GPUs: builds an engine of the whole model, or rejects it.

ONNX Runtime's provider of that name is not used: it leaves operators to other providers, decides on
precision by itself, and comes with a wheel that overwrites the one for CPUs.
"""

import re
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any, Final

import msgspec

from tunegate.artifacts.candidates import FLOAT16, PRECISION, QUANTIZATION, STATIC, cuda_variants
from tunegate.config import TargetConfig
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.runtime import Loaded, SavingRuntime
from tunegate.system.machine.device_lock import claim_on, held_device
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.output.artifact_file import ArtifactFile

ENGINE: Final = "model.engine"
_NEEDED: Final = ("tensorrt", "cuda.bindings")
_INSTALL: Final = "pip install 'tunegate[tensorrt]'"


class TensorRt:
    name, title = "tensorrt", "TensorRT"

    def unsupported(self, target: TargetConfig) -> str:
        if target.kind != "cuda":
            return "is for CUDA devices"
        missing = next((name for name in _NEEDED if not _is_installed(name)), "")
        return f"needs {missing}: {_INSTALL}" if missing else ""

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return cuda_variants(target, {"int8": {PRECISION: "int8", QUANTIZATION: STATIC}})

    def versions(self) -> Mapping[str, str]:
        return {self.name: version(self.name)} if _is_installed(self.name) else {}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        """Writes the engine alone: TensorRT needs nothing else to run it."""
        # Both load what no process that measures needs.
        from tunegate.runtimes.tensorrt.engine import built_engine  # noqa: PLC0415

        source = self._write_typed(model, directory, settings)
        with device_turn():
            engine = built_engine(source, settings)
        if source.parent == directory:
            source.unlink()
        (directory / ENGINE).write_bytes(engine)
        return ENGINE

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.runtimes.tensorrt.engine import EngineModel  # noqa: PLC0415

        return EngineModel(directory, artifact)

    def _write_typed(
        self, model: PreparedModel, directory: Path, settings: Mapping[str, str]
    ) -> Path:
        """Writes the model in the precision of its settings, and returns the file."""
        typed = directory / "typed.onnx"
        if settings.get(QUANTIZATION) == STATIC:
            from tunegate.models.reference.static_int8 import save_static  # noqa: PLC0415

            save_static(model, typed, is_symmetric=True)
            return typed
        if settings.get(PRECISION) == FLOAT16:
            from tunegate.models.reference.model_precision import save_float16  # noqa: PLC0415

            save_float16(model, typed)
            return typed
        return model.fixed


def _is_installed(name: str) -> bool:
    try:
        return find_spec(name) is not None
    except ModuleNotFoundError:  # of the package that it is in
        return False


RUNTIME: SavingRuntime = TensorRt()


# Holds the device during a build: TensorRT chooses kernels by timing them.

_WAIT_SECONDS = 120.0


@contextmanager
def device_turn() -> Iterator[None]:
    """Locks the first visible GPU against all other processes of this host; does nothing without
    one. Raises EnvironmentUnfitError if others hold it for too long."""
    first = next(iter(visible_gpus()), None)
    if first is None:
        yield
        return
    with held_device(claim_on(first.uuid, wait_seconds=_WAIT_SECONDS)):
        yield


# TensorRT's reason for rejecting a model, in one line.

_PREFIX: Final = re.compile(r"^(IBuilder::\w+: )?(Error Code \d+: )?(\w+ \(|\[\w+\.cpp[^\]]*\] )?")
_NO_DRIVER: Final = re.compile(r"CUDA (initialization|driver).*", re.IGNORECASE)
_MAX_CHARACTERS: Final = 200


def engine_refusal(errors: Sequence[str]) -> str:
    """Returns the first error in one line; later ones follow from it."""
    lines = [line.strip() for text in errors for line in text.splitlines() if line.strip()]
    if not lines:
        return "gives no reason"
    no_driver = next((match[0] for line in lines if (match := _NO_DRIVER.search(line))), "")
    if no_driver:
        return f"does not start: {no_driver}"[:_MAX_CHARACTERS]
    first = _PREFIX.sub("", lines[0])
    return f"does not take the model: {first}"[:_MAX_CHARACTERS]


# The user's names of the layers that TensorRT runs, from the engine's own description. It needs no
# TensorRT.

_ONNX_LAYER: Final = re.compile(r"\[ONNX Layer: ([^\]\x1e]+)\]")
_CHANGE: Final = re.compile(r"Reformatting CopyNode for (?:Input|Output) Tensor \d+ to (.+)$")
_JOINED: Final = " + "


def names_of_engine_layers(description: str) -> dict[str, str]:
    """Returns the user's name of each layer in an engine's JSON: that of its first original node. A
    change of layout takes the name of the layer that it is for; an unknown layer keeps its own."""
    layers = [
        each for each in msgspec.json.decode(description).get("Layers", []) if _is_known(each)
    ]
    nodes = {layer["Name"]: _first_node(layer) for layer in layers}
    return {name: node or _fallback_name(name, nodes) for name, node in nodes.items()}


def _is_known(layer: Any) -> bool:
    """Engines built without details list plain names."""
    return isinstance(layer, dict) and isinstance(layer.get("Name"), str)


def _first_node(layer: dict[str, Any]) -> str:
    match = _ONNX_LAYER.search(str(layer.get("Metadata", "")))
    return match[1].strip() if match else ""


def _fallback_name(name: str, names: dict[str, str]) -> str:
    change = _CHANGE.search(name)
    if change is None:
        return name.split(_JOINED, maxsplit=1)[0]
    return names.get(change[1]) or change[1].split(_JOINED)[0]
