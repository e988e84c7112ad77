"""`tunegate compare A B`: gate one thing against another, without a repository."""

from __future__ import annotations

import glob
from collections.abc import Mapping
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.changes import ChangeSet, ModelChange, Revisions, Side
from tunegate.cli.commands.compare import CompareOptions
from tunegate.commands.compare_built import compare_artifacts, compare_commands
from tunegate.commands.compared import AgainstModel, Artifact, Artifacts, Model, understood
from tunegate.commands.reporting import finish
from tunegate.config import AUTO, Config, ModelConfig, TargetConfig
from tunegate.edges.config import file as config_file
from tunegate.edges.models.file_pair import FilePair
from tunegate.edges.output.directory import opened_output
from tunegate.errors import ConfigError
from tunegate.project import Subject
from tunegate.runtimes.loading import titled_artifact
from tunegate.runtimes.requirements import require_installed
from tunegate.settings import Settings, overridden
from tunegate.sides.fixed_sides import Fixed
from tunegate.wiring import opened_tools


def run(options: CompareOptions) -> int:
    """Targets, cache and gate come from the configuration where there is one. Nothing is tuned
    unless a budget is given: models are built with what the cache has."""
    settings = options.settings
    base, head = options.base, options.head
    if options.are_commands:
        if settings.metric_command:
            message = (
                "--metric-command gets an artifact, and commands have none. Leave one of them out."
            )
            raise ConfigError(message)
        return compare_commands(settings, _config(settings, head, {}), base, head)
    both = understood(base, head)
    if isinstance(both, Artifacts):
        return compare_artifacts(settings, _config(settings, head, {}), both.base, both.head)
    return _against_model(settings, both, dict(options.shapes))


def _against_model(
    settings: Settings, both: AgainstModel, shapes: Mapping[str, tuple[int, ...]]
) -> int:
    head = both.head
    config = _config(settings, head.file.name, shapes)
    fixed = _fixed(both)
    wanted = _wanted(both)
    if fixed.runtimes:
        targets = tuple(msgspec.structs.replace(each, runtime=AUTO) for each in config.targets)
        config = msgspec.structs.replace(config, targets=targets)
    base_file = both.base.file if isinstance(both.base, Model) else None
    pair = FilePair(base_file or head.file, head.file)
    name = head.file.name
    shown = base_file or (both.base.directory if isinstance(both.base, Artifact) else None)
    change = ModelChange(
        path=name,
        kind="modified",
        change="unknown",
        base=pair.version("base", name) if base_file else None,
        head=pair.version("head", name),
        targets=tuple(target.name for target in config.targets),
        reason=f"{shown} against {head.file}",
    )
    revisions = Revisions(base="base", head="head", reason="two files")
    changes = ChangeSet(revisions=revisions, models=(change,))
    with opened_output(settings.out, "compare") as out:
        out.forget(since="plan")
        require_installed(config, "run", runtimes=wanted)
        subject = Subject(config=config, repository=pair, root=settings.repository, commit="")
        with opened_tools(settings, subject, out, wanted) as tools:
            report = pipeline.run(tools, changes, fixed)
        return finish(report, settings)


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


def _config(settings: Settings, name: str, shapes: Mapping[str, tuple[int, ...]]) -> Config:
    model = ModelConfig(path=glob.escape(name), inputs=dict(shapes))
    path: Path = settings.config or settings.repository / config_file.CONFIG_FILE
    if settings.config is None and not path.exists():
        found = Config(models=(model,), targets=(TargetConfig(name="cpu"),))
    else:
        given = config_file.load_config(path)
        found = Config(
            models=(model,),
            targets=given.targets,
            cache=given.cache,
            budget=given.budget,
            gate=given.gate,
        )
    by = settings.overrides
    if by.minutes is None and by.usd is None and by.trials is None:
        by = msgspec.structs.replace(by, trials=0)
    return overridden(found, by)
