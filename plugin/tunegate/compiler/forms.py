"""Forms of a built model other than a library of kernels, found by entry point: each comes with an
extra. The library is the core's own form, and the only one without extras."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, cast

from tunegate.artifacts.candidates import LAUNCH
from tunegate.config import RUNTIME_ARTIFACT, TargetConfig
from tunegate.errors import ArtifactError, ConfigError
from tunegate.known_extras import GROUPS, missing
from tunegate.system.machine.health import HealthCheck
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_cache.installed_plugins import PluginError, find_plugins, load_plugin

if TYPE_CHECKING:  # they import the compiler
    from tunegate.compiler.build.build_model import Finished
    from tunegate.compiler.build.functions import ModelFunction
    from tunegate.compiler.targets import ResolvedTarget
    from tunegate.tune.compiler_protocol import BuildModel

FORM_GROUP = GROUPS["artifact"]
LIBRARY = "model.so"
"""The file of a library of kernels."""

Settings = Mapping[str, str]
"""The settings of a candidate."""


class Linked(NamedTuple):
    """A linked file. `decided` are the choices that timing made during linking; a build that
    requests them chooses the same."""

    size_bytes: int
    decided: tuple[int, ...] = ()


class LoadedForm(Protocol):
    """An artifact in this process: a `Loaded` of `runtimes/runtime.py`."""

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]: ...
    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]: ...
    def operators_ms(self, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]: ...


class Form(Protocol):
    """One form. Its module is imported by the command and by each process that builds or loads, so
    heavy imports belong inside the methods. `title` is for people, `file` is the name of the loaded
    file, `entry` what is called in it."""

    @property
    def title(self) -> str: ...
    @property
    def file(self) -> str: ...
    @property
    def entry(self) -> str: ...

    def variants(self, target: TargetConfig) -> Mapping[str, Settings]:
        """Returns the runtime's further candidates on this target: names and settings."""
        ...

    def makes(self, target: TargetConfig, settings: Settings) -> bool:
        """Returns whether a candidate with these settings is built in this form."""
        ...

    def reason_unfit(self) -> str:
        """Returns why this machine cannot make the form, '' if it can."""
        ...

    def checks(self) -> Iterator[HealthCheck]:
        """Yields the form's lines of `tunegate doctor`."""
        ...

    def require(self, functions: Sequence[ModelFunction], target: ResolvedTarget) -> None:
        """Raises NotOfferedError if the form does not support a model with these kernels."""
        ...

    def link(self, finished: Finished, request: BuildModel) -> Linked:
        """Writes the file into the request's directory. Raises UnsupportedModelError,
        NotOfferedError and EnvironmentUnfitError."""
        ...

    def load(self, directory: Path, artifact: ArtifactFile) -> LoadedForm:
        """Returns the loaded artifact, unless its file is a library of kernels, which TVM loads."""
        ...


@cache
def installed_forms() -> tuple[Form, ...]:
    """Imports and returns all installed forms. Raises ConfigError if one cannot be imported."""
    try:
        return tuple(
            cast("Form", load_plugin(plugin)) for plugin in find_plugins(FORM_GROUP).values()
        )
    except PluginError as error:
        raise ConfigError(f"{FORM_GROUP}: {error}.") from error


def form_for(target: TargetConfig, settings: Settings) -> Form | None:
    """Returns the form of a candidate, None for a library of kernels. Raises ConfigError if the
    form is not installed."""
    if target.artifact == RUNTIME_ARTIFACT and LAUNCH not in settings:
        return None
    form = next(
        (
            installed_form
            for installed_form in installed_forms()
            if installed_form.makes(target, settings)
        ),
        None,
    )
    if form is None:
        kind = settings.get(LAUNCH, target.artifact)
        raise ConfigError(missing("artifact", kind) or f"artifact {kind} is not installed.")
    return form


def loaded_form(directory: Path, artifact: ArtifactFile) -> LoadedForm | None:
    """Returns the loaded artifact, None for a library of kernels. Raises ArtifactError if its form
    is not installed."""
    if artifact.file == LIBRARY:
        return None
    for form in installed_forms():
        if form.file == artifact.file:
            return form.load(directory, artifact)
    problem = missing("artifact", "native") or "What loads it is not installed."
    raise ArtifactError(f"{directory / artifact.file}: {problem}")
