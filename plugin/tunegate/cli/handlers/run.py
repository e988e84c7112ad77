"""`tunegate run`: every stage in one process."""

from pathlib import Path

import msgspec

from tunegate import pipeline
from tunegate.artifacts.changes import ChangeSet
from tunegate.cli.commands.gating import RunOptions
from tunegate.cli.handlers import run_history
from tunegate.cli.handlers.reporting import finish
from tunegate.config import Config
from tunegate.errors import ConfigError
from tunegate.ports import Progress
from tunegate.project import open_project
from tunegate.report.escape import visible
from tunegate.review.gate_rules import Waivers
from tunegate.runtimes.registry import may_compile
from tunegate.runtimes.requirements import require_installed
from tunegate.system.cache.shared_cache import objects_in_zone
from tunegate.system.output.directory import judged_output
from tunegate.wiring import model_source, opened_tools, opened_upgrade_tools
from tunegate.wording import plural
from tunegate_cache.stores.store import StoreUnavailableError

_LONGEST = 600


def run(options: RunOptions) -> int:
    """Runs all stages; for a change without models the compiler is not started."""
    settings = options.settings
    project = open_project(settings)
    with judged_output(settings.out, "run") as out:
        # What is compared, and by which rules. Files of an earlier run's later steps are not of it.
        review = project.review(settings)
        out.forget(since="plan")
        changes, config = review.changes, review.config

        # A change without models ends here: it loads no runtime and takes a second.
        if not any(change.is_measured for change in changes.models):
            advice = what_to_do(config, changes, project.repository.root)
            return finish(pipeline.nothing_to_do(config, advice, out.path), settings)

        subject = project.review_subject(review)
        source, work_seconds = model_source(subject, out.workdir), 0.0
        with review.watched.open_environments(changes, source, out.path) as upgrades:
            pythons = upgrades.pythons(changes)
            # Only packages changed: both sides run the same file, so nothing is compiled.
            if not any(change.compiled_sides for change in changes.models):
                with opened_upgrade_tools(settings, review, out, pythons) as tools:
                    warn_of(review.waivers, tools.context.progress)
                    report = pipeline.gate_upgrades(tools, changes, upgrades)
            else:
                # Plan, tune, build, measure, decide. A run that stops before its plan, or after it,
                # has a line in the history, too: what it cost was spent.
                require_installed(config, "run")
                with opened_tools(settings, subject, out, pythons=pythons) as tools:
                    tell_no_base(changes, tools.context.progress)
                    warn_of(review.waivers, tools.context.progress)
                    with run_history.remembered_before_plan(
                        changes, context=tools.context, config=config, repository=project.repository
                    ) as began:
                        plan = pipeline.make_plan(tools, changes)
                    with run_history.remembered_without_end(
                        plan,
                        context=tools.context,
                        config=config,
                        repository=project.repository,
                        began=began,
                    ):
                        report = pipeline.run(tools, plan, upgrades=upgrades)
                    work_seconds = run_history.seconds_besides_tuning(began, report.outcomes)
        run_history.remember(report, config, project.repository, work_seconds)
        return finish(report, settings)


def tell_no_base(changes: ChangeSet, progress: Progress) -> None:
    """Says why every model is processed, if there is nothing to compare with."""
    if changes.revisions.base is not None:
        return
    count = sum(change.head is not None for change in changes.models)
    models = "the model counts" if count == 1 else f"all {count} models count"
    progress.step(visible(f"no base: {changes.revisions.reason}, so {models} as new", _LONGEST))


def warn_of(waivers: Waivers, progress: Progress) -> None:
    """Warns before the first step about waivers that match nothing, instead of minutes later."""
    for note in waivers.notes:
        progress.warn(visible(note, _LONGEST))


# Advice for a change without models, before the first pull request: fill the cache.


def what_to_do(config: Config, changes: ChangeSet, root: Path) -> ChangeSet:
    """Returns the changes with a note on the cache, by one listing and without a compiler. A cache
    that does not answer is no problem here. A change of rules, such as a waiver, gets no note, nor
    does a configuration that compiles nothing."""
    if config.cache.mode == "off" or not changes.unchanged or changes.policy_changes:
        return changes
    count = len(changes.unchanged)
    models, needs = plural(count, "model"), "needs" if count == 1 else "need"
    try:
        is_empty = not objects_in_zone(config.cache, root=root)
    except (StoreUnavailableError, ConfigError):
        return changes
    if not may_compile(config.targets):
        return changes
    if is_empty:
        note = f"the cache has nothing yet: tunegate warm tunes what the {models} here {needs}"
    else:
        note = f"nothing was tuned: tunegate doctor says what the cache knows of the {models} here"
    return msgspec.structs.replace(changes, notes=(*changes.notes, note))
