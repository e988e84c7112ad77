"""The candidates for the models of each target."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator, Mapping, Sequence

import msgspec

from tunegate.artifacts.candidates import CandidateBuild, RuntimeName
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import ConfigError
from tunegate.runtimes.registry import Installed, extends, runtime_named, tunes
from tunegate.runtimes.runtime import Runtime

_VARIANT = re.compile(r"|[a-z0-9][a-z0-9_.]*")


class Offered(msgspec.Struct, frozen=True):
    """Candidates by the names of targets, each in the order in which they are tried. A runtime that
    cannot say what it offers offers nothing, and is one of the `problems`."""

    candidates: Mapping[str, tuple[CandidateBuild, ...]]
    problems: tuple[str, ...] = ()


def offered(
    targets: Sequence[TargetConfig], installed: Installed, only: Collection[RuntimeName] = ()
) -> Offered:
    """Returns what all runtimes offer, or those named. Raises ConfigError where one that is named
    here or by a target cannot run there."""
    problems: dict[str, None] = {}
    found: dict[str, tuple[CandidateBuild, ...]] = {}
    for target in targets:
        named = only or ((target.runtime,) if target.runtime != AUTO else ())
        remedy = "" if only else f" Write runtime: {AUTO}."
        candidates = [each for name in named for each in _named(name, target, remedy)]
        for runtime in () if named else installed.runtimes:
            try:
                candidates += tuple(_candidates(runtime, target))
            except Exception as error:  # noqa: BLE001 -- it is not our code
                said = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                problems[f"{runtime.name} is left out ({said})"] = None
        found[target.name] = tuple(candidates)
    return Offered(found, tuple(problems))


def _named(name: RuntimeName, target: TargetConfig, remedy: str) -> Sequence[CandidateBuild]:
    runtime = runtime_named(name)
    reason = _unsupported(runtime, target)
    if reason:
        raise ConfigError(f"target {target.name}: runtime {name} {reason}.{remedy}")
    return tuple(_candidates(runtime, target))


def _candidates(runtime: Runtime, target: TargetConfig) -> Iterator[CandidateBuild]:
    if _unsupported(runtime, target):
        return
    for variant, settings in runtime.variants(target).items():
        if not _VARIANT.fullmatch(variant):
            message = f"its variant {variant!r} is not of lower-case letters and digits"
            raise ValueError(message)
        yield CandidateBuild(
            runtime=runtime.name,
            title=f"{runtime.title} ({variant})" if variant else runtime.title,
            variant=variant,
            settings=dict(settings),
            is_tuned=tunes(runtime) or extends(runtime),
            extends=extends(runtime),
        )


def _unsupported(runtime: Runtime, target: TargetConfig) -> str:
    """Returns its own reason, or that it does not compile: only a compiler has kernels to link."""
    if target.artifact == "native" and not tunes(runtime):
        return "writes no native artifact"
    return runtime.unsupported(target)
