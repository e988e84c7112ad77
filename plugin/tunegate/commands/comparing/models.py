"""A model against what is compared with it: built with what the cache has, measured and judged."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import ChangeSet, ModelChange, Revisions, Side
from tunegate.artifacts.verdicts import Report
from tunegate.commands.comparing.one_model import is_one_model, unchanged
from tunegate.commands.comparing.operands import AgainstModel, Artifact, Model
from tunegate.config import AUTO, Config, ModelConfig
from tunegate.edges.config import file as config_file
from tunegate.edges.models.file_pair import TWO_FILES, FilePair
from tunegate.edges.models.model_inputs import inputs_of_file
from tunegate.edges.output.directory import OutputDirectory
from tunegate.errors import ConfigError
from tunegate.input_shapes import ShapeLevel, resolve_shapes
from tunegate.project import Subject
from tunegate.runtimes.loading import titled_artifact
from tunegate.runtimes.requirements import require_installed
from tunegate.selection import shapes_for
from tunegate.settings import Overrides, Settings, overridden
from tunegate.sides.export_models import export_models
from tunegate.sides.fixed_sides import Fixed
from tunegate.wiring import model_source, opened_tools


def paired(both: AgainstModel, revisions: Revisions = TWO_FILES) -> FilePair:
    """The files of both sides. Raises ModelError for one that is not there."""
    base_file = both.base.file if isinstance(both.base, Model) else None
    return FilePair(base_file or both.head.file, both.head.file, revisions)


def models_report(
    settings: Settings, config: Config, both: AgainstModel, pair: FilePair, out: OutputDirectory
) -> Report:
    """Returns the report on two models, built with what the cache has: nothing is tuned without a
    budget. One model on both sides is not built, and what is wrong with the configuration is told
    all the same. Raises ConfigError, ModelError, EnvironmentUnfitError."""
    fixed, wanted = _fixed(both), _wanted(both)
    if fixed.runtimes:
        targets = tuple(msgspec.structs.replace(each, runtime=AUTO) for each in config.targets)
        config = msgspec.structs.replace(config, targets=targets)
    revisions = pair.revisions(None, None)
    changes = ChangeSet(revisions=revisions, models=(_change(config, both, pair, revisions),))
    require_installed(config, "run", runtimes=wanted)
    subject = Subject(config=config, repository=pair, root=settings.repository, commit="")
    if is_one_model(both, pair):
        _require_inputs(changes, subject, out)
        return pipeline.nothing_to_do(config, unchanged(both), out.path)
    with opened_tools(settings, subject, out, wanted) as tools:
        return pipeline.run(tools, pipeline.make_plan(tools, changes), fixed)


def comparison_config(
    settings: Settings,
    name: str,
    shapes: Mapping[str, tuple[int, ...]],
    files: Sequence[Path] = (),
) -> Config:
    """Targets, cache, gate and the sizes of the model come from the configuration where there is
    one: sizes by the first of the files that it gives any. The `shapes` count before them. `name`
    is the only model. Raises ConfigError, for a dimension too of which nobody said the size."""
    path: Path = settings.config or settings.repository / config_file.CONFIG_FILE
    found = Config(models=(ModelConfig(path=glob.escape(name)),))
    if settings.config is not None or path.exists():
        found = config_file.load_config(path)
    given = (_configured(found, file, settings.repository) for file in files)
    shapes = {**next(filter(None, given), {}), **shapes}
    if files:
        _require_sizes(files[0], shapes)
    model = ModelConfig(path=glob.escape(name), inputs=dict(shapes))
    found = Config(
        models=(model,),
        targets=found.targets,
        cache=found.cache,
        budget=found.budget,
        gate=found.gate,
    )
    by = settings.overrides
    if not any(key.startswith("budget.") for key in by.values):
        by = Overrides({**by.values, "budget.trials": 0})
    return overridden(found, by)


def _configured(config: Config, file: Path, root: Path) -> Mapping[str, tuple[int, ...]]:
    """The shapes that the configuration gives a model of its repository."""
    if not file.resolve().is_relative_to(root.resolve()):
        return {}
    path = file.resolve().relative_to(root.resolve()).as_posix()
    found = shapes_for(config, path, inputs_of_file(file) if file.is_file() else None)
    return {} if found.mistakes else found.shapes


def _require_sizes(file: Path, shapes: Mapping[str, tuple[int, ...]]) -> None:
    inputs = inputs_of_file(file) if file.is_file() else None
    found = resolve_shapes(inputs or (), [ShapeLevel(shapes=shapes)])
    still_open = dict.fromkeys(each.input for each in found.dimensions if each.size is None)
    if still_open and not found.mistakes:
        options = " ".join(f"--shape {name}=1,3,224,224" for name in still_open)
        message = (
            f"{file.name}: the shape of {', '.join(still_open)} is open. Say it whole, such as "
            f"{options}, or give it in tunegate.yaml."
        )
        raise ConfigError(message)


def _require_inputs(changes: ChangeSet, subject: Subject, out: OutputDirectory) -> None:
    """Raises ModelError for a shape of no input, or of none that it can have."""
    models = export_models(changes, model_source(subject, out.workdir))
    for target in subject.config.targets:
        for change in changes.models:
            models.job(change.path, "head", target)


def _change(
    config: Config, both: AgainstModel, pair: FilePair, revisions: Revisions
) -> ModelChange:
    name = both.head.file.name
    base = both.base.file if isinstance(both.base, Model) else both.base.directory
    shown = [pin.address for pin in revisions.pins] or [str(base), str(both.head.file)]
    is_model = isinstance(both.base, Model)
    return ModelChange(
        path=name,
        kind="modified",
        change="unknown",
        base=pair.version(revisions.base or "", name) if is_model else None,
        head=pair.version(revisions.head, name),
        targets=tuple(target.name for target in config.targets),
        reason=" against ".join(shown),
    )


def _wanted(both: AgainstModel) -> tuple[RuntimeName, ...]:
    """Built for no runtime that nobody asked for: it may not be installed. () is all of them."""
    models = [side for side in (both.base, both.head) if isinstance(side, Model)]
    named = {model.runtime.partition("-")[0] for model in models if model.runtime}
    return tuple(sorted(named)) if all(model.runtime for model in models) else ()


def _fixed(both: AgainstModel) -> Fixed:
    named: tuple[tuple[Side, Model | Artifact], ...] = (("base", both.base), ("head", both.head))
    return Fixed(
        runtimes={
            side: what.runtime for side, what in named if isinstance(what, Model) and what.runtime
        },
        builds={
            side: titled_artifact(what.directory)
            for side, what in named
            if isinstance(what, Artifact)
        },
    )
