"""The runtimes of this installation, by the entry points of the group `tunegate.runtimes`.

An unusable one is a line for the user, and everything else goes on without it.
"""

import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from typing import NamedTuple, TypeGuard, cast

import msgspec

from tunegate import __version__
from tunegate.artifacts.candidates import CandidateBuild, RuntimeName
from tunegate.config import AUTO, TargetConfig
from tunegate.errors import ConfigError
from tunegate.known_extras import refuse_missing
from tunegate.runtimes.runtime import (
    Loaded,
    NotingLoaded,
    Runtime,
    SavingRuntime,
    TuningRuntime,
    WatchedLoaded,
)
from tunegate_cache import installed_plugins

RUNTIME_GROUP = "tunegate.runtimes"
_NAME = re.compile(r"[a-z][a-z0-9_]*")
_TEXTS = ("name", "title")
_METHODS = ("unsupported", "variants", "versions", "load")
_SAVES = ("save",)
_TUNES = ("toolchain", "compiler", "require", "checks")


class Installed(NamedTuple):
    """Runtimes in the order in which they are tried, which also decides ties: ours first, and among
    those the ones that tune. Each of the `problems` is one line."""

    runtimes: tuple[Runtime, ...]
    problems: tuple[str, ...]

    @property
    def tuning(self) -> TuningRuntime:
        """Returns the runtime whose tasks are tuned. Raises ConfigError if there is none."""
        for runtime in self.runtimes:
            if tunes(runtime):
                return runtime
        raise ConfigError("runtimes: none is installed that tunes. Install tunegate again.")

    def versions(self) -> dict[str, str]:
        """Returns the version of this product, and of each distribution that decides what runs."""
        all_versions = {"tunegate": __version__}
        for runtime in self.runtimes:
            all_versions |= runtime.versions()
        return all_versions


def installed_runtimes() -> Installed:
    """Imports and returns all runtimes."""
    problems = [
        f'{plugin.offered_by[0]}: the name "{plugin.name}" is taken, and it is left out'
        for plugin in installed_plugins.find_ignored(RUNTIME_GROUP)
    ]
    runtimes: list[tuple[tuple[bool, bool, str], Runtime]] = []
    for plugin in installed_plugins.find_plugins(RUNTIME_GROUP).values():
        try:
            runtime = _load(plugin)
        except installed_plugins.PluginError as error:
            problems.append(str(error))
            continue
        place = (not _is_ours(plugin), not tunes(runtime), runtime.name)
        runtimes.append((place, runtime))
    runtimes.sort(key=lambda each: each[0])
    return Installed(tuple(runtime for _, runtime in runtimes), tuple(problems))


def runtime_named(name: RuntimeName) -> Runtime:
    """Imports and returns this one only. Raises ConfigError if it is not installed or unusable."""
    plugin = installed_plugins.plugin_named(RUNTIME_GROUP, name)
    if plugin is None:
        refuse_missing("runtime", name)
        names = ", ".join(installed_plugins.find_plugins(RUNTIME_GROUP))
        raise ConfigError(f"runtime {name} is not installed. Installed: {names}.")
    try:
        return _load(plugin)
    except installed_plugins.PluginError as error:
        raise ConfigError(f"runtimes: {error}.") from error


def tunes(runtime: Runtime) -> TypeGuard[TuningRuntime]:
    return not _absent(runtime, _TUNES)


def may_compile(targets: Iterable[TargetConfig]) -> bool:
    """Returns whether models of one of these targets may be compiled, so that `tunegate warm` has
    something to tune. An unusable runtime compiles nothing."""
    return any(target.runtime == AUTO or _compiles(target.runtime) for target in targets)


def _compiles(name: RuntimeName) -> bool:
    try:
        runtime = runtime_named(name)
    except ConfigError:
        return False
    return tunes(runtime)


def saves(runtime: Runtime) -> TypeGuard[SavingRuntime]:
    return not _absent(runtime, _SAVES)


def is_watched(loaded: Loaded) -> TypeGuard[WatchedLoaded]:
    return hasattr(loaded, "watched")


def has_notes(loaded: Loaded) -> TypeGuard[NotingLoaded]:
    return not _absent(loaded, ("notes",))


def _is_ours(plugin: installed_plugins.Plugin) -> bool:
    return plugin.offered_by[0].partition(" ")[0] == "tunegate"


def _load(plugin: installed_plugins.Plugin) -> Runtime:
    """Returns the runtime. Raises PluginError if it is none."""
    plugged_in = installed_plugins.load_plugin(plugin)
    problem = _problem(plugin.name, plugged_in)
    if problem:
        raise installed_plugins.PluginError(f'{plugin.offered_by[0]}: "{plugin.value}" {problem}')
    return cast("Runtime", plugged_in)


def _problem(name: str, candidate: object) -> str:
    absent = [text for text in _TEXTS if not isinstance(getattr(candidate, text, None), str)]
    absent += _absent(candidate, _METHODS)
    if not _NAME.fullmatch(name):
        return f"has the name {name!r}, and may have lower-case letters, digits and _"
    if absent:
        return f"has no {absent[0]}"
    runtime = cast("Runtime", candidate)
    if runtime.name != name:
        return f"calls itself {runtime.name!r}, and is registered as {name!r}"
    return "" if saves(runtime) or tunes(runtime) else f"has no {_SAVES[0]}"


def _absent(candidate: object, names: Iterable[str]) -> list[str]:
    return [name for name in names if not callable(getattr(candidate, name, None))]


# The candidates for the models of each target.

_VARIANT = re.compile(r"|[a-z0-9][a-z0-9_.]*")


class Offered(msgspec.Struct, frozen=True):
    """Candidates by target name, in the order in which they are tried. A runtime that fails to say
    what it offers offers nothing, and is one of the `problems`."""

    candidates: Mapping[str, tuple[CandidateBuild, ...]]
    problems: tuple[str, ...] = ()


def offer_runtimes(
    targets: Sequence[TargetConfig], installed: Installed, only: Collection[RuntimeName] = ()
) -> Offered:
    """Returns what all runtimes offer, or those in `only`. Raises ConfigError if one that is named
    here or by a target cannot run there."""
    problems: dict[str, None] = {}
    candidates_of: dict[str, tuple[CandidateBuild, ...]] = {}
    for target in targets:
        names = only or ((target.runtime,) if target.runtime != AUTO else ())
        remedy = "" if only else f" Write runtime: {AUTO}."
        candidates = [
            candidate for name in names for candidate in _required_candidates(name, target, remedy)
        ]
        for runtime in () if names else installed.runtimes:
            try:
                candidates += tuple(_candidates(runtime, target))
            except Exception as error:  # noqa: BLE001 -- it is not our code
                problem = f"{type(error).__name__}: {error}".splitlines()[0][:200]
                problems[f"{runtime.name} is left out ({problem})"] = None
        candidates_of[target.name] = tuple(candidates)
    return Offered(candidates_of, tuple(problems))


def _required_candidates(
    name: RuntimeName, target: TargetConfig, remedy: str
) -> Sequence[CandidateBuild]:
    runtime = runtime_named(name)
    reason = _why_unsupported(runtime, target)
    if reason:
        raise ConfigError(f"target {target.name}: runtime {name} {reason}.{remedy}")
    return tuple(_candidates(runtime, target))


def _candidates(runtime: Runtime, target: TargetConfig) -> Iterator[CandidateBuild]:
    if _why_unsupported(runtime, target):
        return
    for variant, settings in runtime.variants(target).items():
        if not _VARIANT.fullmatch(variant):
            raise ValueError(f"its variant {variant!r} is not of lower-case letters and digits")
        yield CandidateBuild(
            runtime=runtime.name,
            title=f"{runtime.title} ({variant})" if variant else runtime.title,
            variant=variant,
            settings=dict(settings),
            is_tuned=tunes(runtime),
        )


def _why_unsupported(runtime: Runtime, target: TargetConfig) -> str:
    """Returns the runtime's own reason, or that it does not compile: only a compiler has kernels to
    link."""
    if target.artifact == "native" and not tunes(runtime):
        return "writes no native artifact"
    return runtime.unsupported(target)
