"""`tunegate compare A B`: gate one thing against another, without a repository."""

from __future__ import annotations

from collections.abc import Mapping

from tunegate.cli.commands.comparing import CompareOptions
from tunegate.cli.handlers.compare_builds import compare_artifacts, compare_commands
from tunegate.cli.handlers.compare_environments import compare_environments, one_model
from tunegate.cli.handlers.compare_models import (
    AgainstModel,
    Artifacts,
    Model,
    comparison_config,
    models_report,
    paired,
    understood,
)
from tunegate.cli.handlers.reporting import finish
from tunegate.errors import ConfigError
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output


def run(options: CompareOptions) -> int:
    """Targets, cache and gate come from the configuration where there is one. Nothing is tuned
    unless a budget is given: models are built with what the cache has."""
    settings = options.settings
    base, head = options.base, options.head
    if options.environments:
        model = one_model(base, head, options)
        shapes = dict(options.shapes)
        config = comparison_config(settings, model.file.name, shapes, [model.file])
        return compare_environments(settings, config, model, options.environments)
    if not head:
        raise ConfigError("HEAD is missing. See: tunegate compare --help")
    if options.are_commands:
        if settings.metric_command:
            message = (
                "--metric-command gets an artifact, and commands have none. Leave one of them out."
            )
            raise ConfigError(message)
        return compare_commands(settings, comparison_config(settings, head, {}), base, head)
    both = understood(base, head)
    if isinstance(both, Artifacts):
        config = comparison_config(settings, head, {})
        return compare_artifacts(settings, config, both.base, both.head)
    return _against_model(settings, both, dict(options.shapes))


def _against_model(
    settings: Settings, both: AgainstModel, shapes: Mapping[str, tuple[int, ...]]
) -> int:
    of_base = [both.base.file] if isinstance(both.base, Model) else []
    files = [both.head.file, *of_base]
    config = comparison_config(settings, both.head.file.name, shapes, files)
    pair = paired(both)
    with opened_output(settings.out, "compare") as out:
        out.forget(since="plan")
        return finish(models_report(settings, config, both, pair, out), settings)
