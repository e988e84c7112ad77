"""Measures layers of the configured models for cost models to learn from, and adds a line for each
to zone `exp` of the cache: work for idle runners. Run
`python -m research.experience.collect --repository DIR --minutes 30`."""

from __future__ import annotations

import dataclasses
import sys
from collections.abc import Iterator, Sequence
from typing import Annotated

import msgspec

from research.command_line import carried_out
from research.experience.kept_lines import KeptLines
from research.experience.layer_collection import DrawnLayers, LayerCollection
from research.experience.layers.drawing import DrawnLayer, drawn_layers
from research.experience.layers.layer_files import layers_of_models
from research.experience.measured_tasks import MeasuredTasks
from research.experience.teaching_tuner import Lessons, TeachingTuner
from research.experience.zone_tasks import measured_layers
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.plans import Budget
from tunegate.cli.command import Command
from tunegate.cli.handlers.cache_admin import answering
from tunegate.cli.handlers.reporting import write_json, write_line
from tunegate.cli.option import Option, count, seed
from tunegate.cli.shared_options import BudgetOptions, CacheAddress, Options
from tunegate.config import Config, TargetConfig
from tunegate.errors import PASS, CancelledError, ConfigError
from tunegate.models.export_models import export_models
from tunegate.project import open_project
from tunegate.report.units import duration
from tunegate.review.globs import chosen_models
from tunegate.runtimes.requirements import require_installed
from tunegate.system.cache.shared_cache import open_shared_store
from tunegate.system.machine.cores import default_threads
from tunegate.system.output.directory import opened_output
from tunegate.tools import Tools
from tunegate.tune.budget import resolve_budget
from tunegate.tune.tuner import EngineTuner, SearchOptions
from tunegate.wiring import opened_tools
from tunegate.wording import plural


class CollectOptions(Options, frozen=True, kw_only=True):
    """The models that layers are taken from, and how much is measured."""

    budget: BudgetOptions = BudgetOptions()
    cache: CacheAddress = CacheAddress()
    models: Annotated[
        tuple[str, ...],
        Option(
            "take layers only of the configured models that match; may be given for each",
            "GLOB",
            flags=("--model",),
            is_repeated=True,
        ),
    ] = ()
    tasks: Annotated[
        int | None, Option("cap on measured tasks; default: what the budget pays for", "N", count)
    ] = None
    trials_per_task: Annotated[int, Option("candidates of each task", "N", count)] = 100
    target: Annotated[
        str, Option("measure for this target; default: the first one, a CPU before a GPU", "NAME")
    ] = ""
    draw_seed: Annotated[
        int,
        Option(
            "which layers are drawn, in which order, and which candidates; the same one goes on "
            "where an earlier call ended",
            "N",
            seed,
            flags=("--seed",),
        ),
    ] = 1


COMMAND = Command(
    name="research.experience.collect",
    summary="measure layers of the configured models, for cost models to learn from",
    options=CollectOptions,
    handler="research.experience.collect:run",
    examples=(
        "python -m research.experience.collect --minutes 30",
        "python -m research.experience.collect --model 'models/*.onnx' --tasks 8",
        "python -m research.experience.collect --target gpu --minutes 30",
    ),
)


def main(arguments: Sequence[str]) -> int:
    return carried_out(COMMAND, run, arguments)


class CollectedExperience(msgspec.Struct, frozen=True, kw_only=True):
    """`kinds` are numbers of tasks, `rows` measurements of all. `why` nothing more was measured."""

    schema: int = 1
    zone: str = "exp"
    layers: int
    tasks: int
    kinds: dict[str, int]
    rows: int
    trials: int
    seconds: float
    why: str


def run(options: CollectOptions) -> int:
    """Raises ConfigError where nothing could be kept, or there is nothing to draw from,
    EnvironmentUnfitError for a cache that does not answer, CancelledError: what had enough
    measurements is in the cache."""
    settings = options.settings
    project = open_project(settings)
    config = project.config
    target = _target(config, options.target)
    changes = chosen_models(project.all_models(), options.models)
    store = open_shared_store(config.cache, root=project.repository.root)
    kept = KeptLines(store, config.cache.url)
    threads = _NO_THREADS if target.kind == "cuda" else target.threads or default_threads()
    with opened_output(settings.out, "experience collect") as out:
        require_installed(config, "tune", {target.name})
        layers = DrawnLayers(out.workdir / "layers", threads)
        lessons = Lessons(layers.identify, kept)
        # The device of the run is that of its targets.
        only = msgspec.structs.replace(config, targets=(target,))
        subject = dataclasses.replace(project.checkout(), config=only)
        with opened_tools(settings, subject, out) as usual:
            tools = _teaching(usual, options.draw_seed, lessons)
            with answering(config.cache):
                known = measured_layers(store, tools.origin.device.name, threads)
            budget = _budget(config, target, options)
            collection = LayerCollection(tools, target, layers, budget)
            collected = _collect(collection, tools, changes, kept, known=known, options=options)
            kept.save(out.path)
    if collected.why == _CANCELLED:
        message = f"cancelled; {plural(collected.tasks, 'measured task')} went to zone exp"
        raise CancelledError(message)
    if settings.as_json:
        write_json(collected)
    else:
        _show(collected, config.cache.url)
    return PASS


_NO_THREADS = 0
"""Those of a candidate on a GPU are no threads of the machine."""
_CANCELLED = "cancelled"
_SPENT = "the budget is spent"


def _teaching(tools: Tools, seed: int, lessons: Lessons) -> Tools:
    """The tools with a tuner that tries bad candidates, too, and keeps what it finds."""
    if not isinstance(tools.tuner, EngineTuner):
        raise TypeError(tools.tuner)
    tasks = MeasuredTasks()
    tools.tuner.search = SearchOptions(seed=seed, filters=False, describe=tasks.describe)
    return dataclasses.replace(tools, tuner=TeachingTuner(tools.tuner, tasks, lessons))


def _target(config: Config, name: str) -> TargetConfig:
    """The target of this name, or the first one. Raises ConfigError, also for a cache that may not
    be written."""
    if config.cache.mode != "rw":
        message = (
            f"cache.mode: {config.cache.mode} keeps nothing of what is measured. Set it to rw."
        )
        raise ConfigError(message)
    if not name:
        return min(config.targets, key=lambda target: target.kind != "llvm")
    named = [target for target in config.targets if target.name == name]
    if not named:
        configured = ", ".join(target.name for target in config.targets)
        raise ConfigError(f"--target: {name} is no target. Name one of these: {configured}.")
    return named[0]


def _budget(config: Config, target: TargetConfig, options: CollectOptions) -> Budget:
    return msgspec.structs.replace(
        resolve_budget(config.budget, target),
        trials_per_task=options.trials_per_task,
        min_gain_percent_per_minute=0.0,
    )


def _collect(
    collection: LayerCollection,
    tools: Tools,
    changes: ChangeSet,
    kept: KeptLines,
    *,
    known: frozenset[str],
    options: CollectOptions,
) -> CollectedExperience:
    """Raises ConfigError where no model has a layer that could be drawn."""
    files = {path: model for (path, _), model in export_models(changes, tools.source).files.items()}
    found = list(layers_of_models(files))
    if not found:
        models = plural(len(changes.models), "model")
        message = (
            f"{models}: no convolution and no product of float32 with known sizes in "
            f"{'it' if len(changes.models) == 1 else 'them'}. Give dynamic inputs their shapes, or "
            "name other models."
        )
        raise ConfigError(message)
    is_cancelled = False
    fresh = _Fresh(drawn_layers(found, options.draw_seed), known)
    for outcome in collection.outcomes(fresh, options.tasks):
        is_cancelled = outcome.stopped == "cancelled"
        if is_cancelled or kept.has_failed:
            break
    has_all = options.tasks is not None and kept.tasks >= options.tasks
    return CollectedExperience(
        layers=len({layer.digest for _, layer in found}),
        tasks=kept.tasks,
        kinds=dict(sorted(kept.kinds.items())),
        rows=kept.rows,
        trials=collection.trials,
        seconds=collection.seconds,
        why=end_of_collection(
            is_cancelled=is_cancelled, has_all=has_all, is_exhausted=fresh.is_exhausted
        ),
    )


def end_of_collection(*, is_cancelled: bool, has_all: bool, is_exhausted: bool) -> str:
    """The reason why nothing more was measured. A cancellation comes before all others, also where
    what was asked for has enough measurements already."""
    if is_cancelled:
        return _CANCELLED
    if has_all:
        return "these were asked for"
    return "every layer that is drawn is measured already" if is_exhausted else _SPENT


class _Fresh:
    """The drawn layers that nobody has measured on this device."""

    def __init__(self, drawn: Iterator[DrawnLayer], known: frozenset[str]) -> None:
        self._drawn, self._known = drawn, known
        self.is_exhausted = False

    def __iter__(self) -> _Fresh:
        return self

    def __next__(self) -> DrawnLayer:
        for each in self._drawn:
            if each.layer.digest not in self._known:
                return each
        self.is_exhausted = True
        raise StopIteration


def _show(collected: CollectedExperience, url: str) -> None:
    kinds = ", ".join(f"{count} {kind}" for kind, count in collected.kinds.items())
    of = f" ({kinds})" if kinds else ""
    where = f". They are in zone exp of {url}" if collected.tasks else ""
    write_line(
        f"{plural(collected.tasks, 'task')}{of} with {plural(collected.rows, 'measurement')} in "
        f"{duration(collected.seconds)}, drawn from {plural(collected.layers, 'layer')}; "
        f"{collected.why}{where}"
    )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
