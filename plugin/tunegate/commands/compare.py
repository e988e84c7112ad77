"""`tunegate compare A B`: gate one ONNX file against another, without a repository."""

from __future__ import annotations

import glob
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet, ModelChange
from tunegate.commands.reporting import finish
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.edges import config_file
from tunegate.edges.earlier_results import forget_results
from tunegate.edges.file_pair import FilePair
from tunegate.settings import Settings, overridden
from tunegate.toolbox import opened_tools, prepared_out


def run(
    settings: Settings, *, models: Sequence[Path], shapes: Mapping[str, tuple[int, ...]]
) -> int:
    """Targets, cache and gate come from the configuration where there is one. Nothing is tuned
    unless a budget is given: both files are built with what the cache has."""
    forget_results(prepared_out(settings), since="plan")
    base, head = models
    pair = FilePair(base, head)
    config = _config(settings, head, shapes)
    change = ModelChange(
        path=head.name,
        kind="modified",
        change="unknown",
        base=pair.version("base", head.name),
        head=pair.version("head", head.name),
        targets=tuple(target.name for target in config.targets),
        reason=f"{base} against {head}",
    )
    changes = ChangeSet(revisions=pair.revisions(None, None), models=(change,))
    with opened_tools(settings, config, pair, settings.repository, "") as tools:
        report = pipeline.run(tools, changes)
    return finish(report, settings)


def _config(settings: Settings, head: Path, shapes: Mapping[str, tuple[int, ...]]) -> Config:
    model = ModelConfig(path=glob.escape(head.name), inputs=dict(shapes))
    path = settings.config or settings.repository / config_file.NAME
    if settings.config is None and not path.exists():
        found = Config(models=(model,), targets=(TargetConfig(name="cpu"),))
    else:
        given = config_file.load(path)
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
