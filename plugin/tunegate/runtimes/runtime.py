"""The protocol of a runtime; `docs/how-to/extend.md` shows one.

Its module is imported by the command and by each measuring process, so heavy imports belong inside
the methods.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal, Protocol

from tunegate.artifacts.candidates import RuntimeName
from tunegate.config import TargetConfig
from tunegate.models.prepared import PreparedModel
from tunegate.ports import Compiler, Programs
from tunegate.system.machine.health import HealthCheck
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate_cache.format.records import Toolchain

Feed = Mapping[str, Any]
"""Input arrays by name."""
Inference = Callable[[], object]
"""One synchronous inference."""
Step = Literal["plan", "tune", "gate", "run"]


class Loaded(Protocol):
    """An artifact, loaded in this process. It uses as many threads as the artifact states."""

    def run(self, feed: Feed) -> Sequence[Any]:
        """Returns the outputs in the model's order: an array for a tensor, a list for a sequence, a
        dictionary for a map, None for an absent optional value."""
        ...

    def bound(self, feed: Feed) -> Inference:
        """Returns what is timed: only an inference on these inputs, until it has finished. On CPUs
        it is asked for up to 64 inputs, whose inferences then run in turn."""
        ...


class TimedLoaded(Loaded, Protocol):
    """A loaded model that tells the times of several inferences together."""

    def operators_ms(self, feed: Feed, inferences: int) -> Mapping[str, float]:
        """Returns the median time of each operator in one inference of the whole model."""
        ...


class Watched(Protocol):
    """A loaded model that times its operators in each inference."""

    def infer(self) -> None: ...
    def inferences_ms(self) -> Sequence[Mapping[str, float]]:
        """Returns the time of each operator in each inference. Nothing runs after it."""
        ...


class WatchedLoaded(Loaded, Protocol):
    """A loaded model whose inferences can be watched one by one, in turn with another's."""

    def watched(self, feed: Feed) -> Watched: ...


class NotingLoaded(Loaded, Protocol):
    """A loaded model that may run differently than requested, as on another device."""

    def notes(self) -> Sequence[str]:
        """Returns what a user should know about that, once it has run."""
        ...


class Runtime(Protocol):
    """A way to run models. `name` is its entry point's, `title` is for people."""

    @property
    def name(self) -> RuntimeName: ...
    @property
    def title(self) -> str: ...

    def unsupported(self, target: TargetConfig) -> str:
        """Returns why it runs nothing on this target, as in "is for CPUs"; '' if it does."""
        ...

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        """Returns its variants there: a name ('' for the usual one) and settings."""
        ...

    def versions(self) -> Mapping[str, str]:
        """Returns the version of each distribution that decides what runs."""
        ...

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded: ...


class SavingRuntime(Runtime, Protocol):
    """A runtime that takes a model nearly as it is: `build_child.py` makes its artifacts."""

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        """Writes files into the directory, and returns the name of the one to load."""
        ...


class OpenCompiler(Compiler, Protocol):
    """A compiler with processes of its own."""

    def close(self) -> None: ...


class TuningRuntime(Runtime, Protocol):
    """A runtime that compiles, and has tasks to tune. `programs` are what the tuner drives."""

    @property
    def programs(self) -> Programs: ...
    def toolchain(self) -> Toolchain: ...
    def compiler(self, scratch: Path, *, seed: int, limit_seconds: float) -> OpenCompiler: ...
    def require(self, targets: Sequence[TargetConfig], step: Step, instead: RuntimeName) -> None:
        """Raises ConfigError or EnvironmentUnfitError if it cannot do this step here. `instead` is
        another runtime for these targets, '' if there is none."""
        ...

    def checks(self, targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
        """Yields its lines of `tunegate doctor` for these targets, or for any without them."""
        ...
