"""Builds a model and what it is compared with from the cache, measures and judges them."""

from __future__ import annotations

import re
from collections import ChainMap
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import ChangeSet, ModelChange, ModelInput, Revisions, Side
from tunegate.artifacts.verdicts import Report
from tunegate.config import AUTO, Config, ModelConfig
from tunegate.errors import ConfigError
from tunegate.known_extras import refuse_missing
from tunegate.measure.choose_runtime import Fixed
from tunegate.models.export_models import export_models
from tunegate.models.file_pair import TWO_FILES, FilePair
from tunegate.models.model_inputs import inputs_of_file
from tunegate.models.operator_libraries import require_outside
from tunegate.project import Subject
from tunegate.redaction import redact
from tunegate.review import config_file
from tunegate.review.globs import literal
from tunegate.review.input_shapes import ShapeLevel, resolve_shapes
from tunegate.review.model_settings import shapes_for
from tunegate.runtimes.loading import titled_artifact
from tunegate.runtimes.registry import RUNTIME_GROUP
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Overrides, Settings, apply_overrides
from tunegate.system.output.directory import OutputDirectory
from tunegate.wiring import model_source, opened_tools
from tunegate_cache.installed_plugins import plugin_named


def pair_files(both: AgainstModel, revisions: Revisions = TWO_FILES) -> FilePair:
    """Returns the files of both sides. Raises ModelError for a missing one."""
    base_file = both.base.file if isinstance(both.base, Model) else None
    return FilePair(base_file or both.head.file, both.head.file, revisions)


def models_report(
    settings: Settings, config: Config, both: AgainstModel, pair: FilePair, out: OutputDirectory
) -> Report:
    """Returns the report on two models, built with the cache's schedules: without a budget nothing
    is tuned. If both sides are one model it is not built, but a wrong configuration is still
    reported. Raises ConfigError, ModelError, EnvironmentUnfitError."""
    fixed = _fixed_sides(both)
    models = [side for side in (both.base, both.head) if isinstance(side, Model)]
    named = tuple(sorted({m.runtime.partition("-")[0] for m in models if m.runtime}))
    # A side without a name may run under any that is installed.
    runtimes = named if all(model.runtime for model in models) else ()
    if fixed.runtimes:
        targets = tuple(msgspec.structs.replace(target, runtime=AUTO) for target in config.targets)
        config = msgspec.structs.replace(config, targets=targets)
    revisions = pair.revisions(None, None)
    changes = ChangeSet(revisions=revisions, models=(_change(config, both, pair, revisions),))
    for required in dict.fromkeys((named, runtimes)):
        require_installed(config, "run", runtimes=required)
    subject = Subject(
        config=_without_lost(config, both),
        repository=pair,
        root=settings.repository,
        commit="",
        config_before=config,
    )
    if is_one_model(both, pair):
        _require_inputs(changes, subject, out)
        return pipeline.nothing_to_do(config, no_changes(both), out.path)
    with opened_tools(settings, subject, out, runtimes) as tools:
        return pipeline.run(tools, pipeline.make_plan(tools, changes), fixed)


def comparison_config(
    settings: Settings,
    name: str,
    shapes: Mapping[str, tuple[int, ...]],
    files: Sequence[Path] = (),
) -> Config:
    """Returns the configuration of a comparison. Targets, cache, gate and model sizes come from the
    repository's, if any: a size of an input is that of the first of `files` that has one there.
    `shapes` take precedence, and `name` is the only model. Libraries of operators come only from a
    configuration that the user names. Raises ConfigError, also for a dimension of unknown size."""
    path: Path = settings.config or settings.repository / config_file.CONFIG_FILE
    config = Config(models=(ModelConfig(path=literal(name)),))
    if settings.config is not None or path.exists():
        config = config_file.load_config(path)
    of_files = (_configured_shapes(config, file, settings.repository) for file in files)
    shapes = dict(ChainMap(dict(shapes), *map(dict, of_files)))
    require_sizes(files, shapes)
    model = ModelConfig(path=literal(name), inputs=dict(shapes))
    config = Config(
        models=(model,),
        targets=config.targets,
        cache=config.cache,
        budget=config.budget,
        gate=config.gate,
        custom_operators=config.custom_operators if settings.config is not None else (),
    )
    require_outside(config.custom_operators, settings.repository)
    by = settings.overrides
    if not any(key.startswith("budget.") for key in by.values):
        by = Overrides({**by.values, "budget.trials": 0})
    return apply_overrides(config, by)


def _configured_shapes(config: Config, file: Path, root: Path) -> Mapping[str, tuple[int, ...]]:
    """Returns the shapes that the configuration gives a model of its repository."""
    if not file.resolve().is_relative_to(root.resolve()):
        return {}
    path = file.resolve().relative_to(root.resolve()).as_posix()
    resolution = shapes_for(config, path, inputs_of_file(file) if file.is_file() else None)
    return {} if resolution.mistakes else resolution.shapes


def require_sizes(files: Sequence[Path], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """Raises ConfigError, with the option to give, for an open size of an ONNX file. A shape may be
    of an input that only one of the files has."""
    for file in files:
        of_file = _inputs(file)
        own = {each.name: shapes[each.name] for each in of_file if each.name in shapes}
        resolution = resolve_shapes(of_file, [ShapeLevel(shapes=own)])
        still_open = dict.fromkeys(
            dimension.input for dimension in resolution.dimensions if dimension.size is None
        )
        if still_open and not resolution.mistakes:
            options = " ".join(f"--shape {name}=1,3,224,224" for name in still_open)
            message = (
                f"{file.name}: the shape of {', '.join(still_open)} is open. Give all of it, such "
                f"as {options}."
            )
            raise ConfigError(message)


def _inputs(file: Path) -> tuple[ModelInput, ...]:
    return (inputs_of_file(file) if file.is_file() else None) or ()


def _without_lost(config: Config, both: AgainstModel) -> Config:
    """Returns the head's configuration: without shapes of inputs that only the base has."""
    of_base = _inputs(both.base.file) if isinstance(both.base, Model) else ()
    lost = {each.name for each in of_base}.difference(each.name for each in _inputs(both.head.file))
    model = config.models[0]
    kept = {name: shape for name, shape in model.inputs.items() if name not in lost}
    return msgspec.structs.replace(config, models=(msgspec.structs.replace(model, inputs=kept),))


def _require_inputs(changes: ChangeSet, subject: Subject, out: OutputDirectory) -> None:
    """Raises ModelError for a shape without an input of that name, or one that the input cannot
    have."""
    models = export_models(changes, model_source(subject, out.workdir))
    for target in subject.config.targets:
        for change in changes.models:
            models.job(change.path, "head", target)


def _change(
    config: Config, both: AgainstModel, pair: FilePair, revisions: Revisions
) -> ModelChange:
    name = both.head.file.name
    base = both.base.file if isinstance(both.base, Model) else both.base.directory
    sides = [pin.address for pin in revisions.pins] or [str(base), str(both.head.file)]
    is_model = isinstance(both.base, Model)
    return ModelChange(
        path=name,
        kind="modified",
        change="unknown",
        base=pair.version(revisions.base or "", name) if is_model else None,
        head=pair.version(revisions.head, name),
        targets=tuple(target.name for target in config.targets),
        reason=" against ".join(sides),
    )


def _fixed_sides(both: AgainstModel) -> Fixed:
    sides: tuple[tuple[Side, Model | Artifact], ...] = (("base", both.base), ("head", both.head))
    return Fixed(
        runtimes={
            side: what.runtime for side, what in sides if isinstance(what, Model) and what.runtime
        },
        builds={
            side: titled_artifact(what.directory)
            for side, what in sides
            if isinstance(what, Artifact)
        },
    )


# The operands of `tunegate compare`, parsed.

_ADDRESS = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://|models:/")


class Model(msgspec.Struct, frozen=True):
    """An ONNX file; `runtime` names a runtime or one of its candidates, None if the fastest may run
    it."""

    file: Path
    runtime: RuntimeName | None = None


class Artifact(msgspec.Struct, frozen=True):
    """A directory with an `artifact.json`."""

    directory: Path


class Artifacts(msgspec.Struct, frozen=True):
    """Two artifacts to compare; nothing is built."""

    base: Path
    head: Path


class AgainstModel(msgspec.Struct, frozen=True):
    """A head to build, and a base to build if it is a model too."""

    base: Model | Artifact
    head: Model


def parse_operands(base: str, head: str) -> Artifacts | AgainstModel:
    """Parses the operands: a directory is an artifact, anything else an ONNX file, optionally after
    a runtime and a colon. Raises ConfigError for an artifact against an older model."""
    return against(_side(base), _side(head))


def against(base: Model | Artifact, head: Model | Artifact) -> Artifacts | AgainstModel:
    """Pairs the sides. Raises ConfigError for an artifact against an older model."""
    if isinstance(head, Model):
        return AgainstModel(base, head)
    if isinstance(base, Artifact):
        return Artifacts(base.directory, head.directory)
    # No path: it may be a temporary directory. Sides in the other order would be another question.
    message = (
        "an artifact is compared with another artifact, and not with a model before it. Give both "
        "as ONNX files, or both as artifacts."
    )
    raise ConfigError(message)


def _side(text: str) -> Model | Artifact:
    runtime, _, file = text.partition(":")
    runtime_name = runtime.partition("-")[0]
    if file and plugin_named(RUNTIME_GROUP, runtime_name) is not None:
        return Model(Path(file), runtime)
    path = Path(text)
    if _ADDRESS.match(text):
        message = (
            f"{redact(text.partition('?')[0], ())}: compare takes files and directories of this "
            "machine. Gate addresses with tunegate deploy-gate."
        )
        raise ConfigError(message)
    if file and not path.exists():
        refuse_missing("runtime", runtime_name)
    return Artifact(path) if path.is_dir() else Model(path)


# One model on both sides: nothing is built, since neither side can be slower.


def is_one_model(both: AgainstModel, pair: FilePair) -> bool:
    """Returns whether both sides are the same model under the same runtime. Raises ModelError for a
    file that is no model."""
    return (
        isinstance(both.base, Model) and both.base.runtime == both.head.runtime and pair.are_same()
    )


def no_changes(both: AgainstModel) -> ChangeSet:
    """Returns the change set of a comparison without a difference."""
    name = both.head.file.name
    revisions = Revisions(base=name, head=name, reason="one model on both sides")
    return ChangeSet(revisions=revisions, models=(), unchanged=(name,))
