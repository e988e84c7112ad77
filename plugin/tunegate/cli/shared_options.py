"""The options that several commands take, in groups, and the settings they produce."""

from pathlib import Path
from typing import Annotated, Any, ClassVar, get_args

import msgspec

from tunegate.cli.option import KeyOptions, Option, Shape, not_negative, seed, shape
from tunegate.config import BudgetConfig, CacheConfig, GateConfig
from tunegate.settings import CommentWhen, Overrides, Settings

InputShapes = Annotated[
    tuple[Shape, ...],
    Option(
        "the full shape of a dynamic input; may be given for each",
        "INPUT=1,3,224,224",
        shape,
        flags=("--shape",),
        is_repeated=True,
    ),
]
"""The option of commands that take a model without a configuration."""


class Common(msgspec.Struct, frozen=True, kw_only=True):
    """The options of every command."""

    TITLE: ClassVar[str] = "every command"

    as_json: Annotated[bool, Option("print the artifact to stdout", flags=("--json",))] = False
    config: Annotated[
        Path | None,
        Option("the configuration; default: tunegate.yaml of the repository", "FILE", Path),
    ] = None
    out: Annotated[Path, Option("where the results go", "DIR", Path)] = Path(".tunegate")
    repository: Annotated[Path, Option("where the models are", "DIR", Path)] = Path()
    quiet: Annotated[
        bool,
        Option("say nothing but errors; what goes to stdout stays", flags=("-q", "--quiet")),
    ] = False
    verbose: Annotated[
        bool,
        Option(
            "say each step as it goes, and the traceback of an error",
            flags=("-v", "--verbose"),
            instead_of="quiet",
        ),
    ] = False
    log_file: Annotated[
        Path | None,
        Option("keep all talk here, with times and tracebacks and without secrets", "FILE", Path),
    ] = None


class ComparedRevisions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the revisions to compare."""

    TITLE: ClassVar[str] = "revisions"

    base: Annotated[
        str | None,
        Option(
            "a branch, which is compared with where the head left it, or one commit; default: the "
            "default branch",
            "REV",
        ),
    ] = None
    since_release: Annotated[
        bool,
        Option(
            "compare with the release before (gate.release-tags), by gate.release-margin-percent",
            instead_of="base",
        ),
    ] = False
    no_base: Annotated[
        bool,
        Option("compare with nothing: every model counts as added", instead_of="base"),
    ] = False
    head: Annotated[str | None, Option("what to check; default: HEAD", "REV")] = None
    policy: Annotated[
        str | None, Option("whose configuration judges; default: the base's", "REV")
    ] = None
    chosen_by: Annotated[
        str, Option("how base and head were chosen, in words for the report", "TEXT")
    ] = ""


class PlannedRevisions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for the revisions that the plan must be of: a later job never judges what an earlier
    one did not plan."""

    TITLE: ClassVar[str] = "revisions of the plan"

    base: Annotated[str | None, Option("refuse a plan that has another base", "REV")] = None
    policy: Annotated[str | None, Option("refuse a plan judged by another commit", "REV")] = None
    head: Annotated[
        str | None, Option("refuse a plan that has another head; default: HEAD", "REV")
    ] = None


class BudgetOptions(KeyOptions, frozen=True, kw_only=True):
    """Options for the tuning budget. Later jobs do not take it: the plan has settled it."""

    TITLE: ClassVar[str] = "budget"
    SECTION: ClassVar[type[msgspec.Struct]] = BudgetConfig


class Margin(KeyOptions, frozen=True, kw_only=True):
    """Options for the margin of the gate."""

    TITLE: ClassVar[str] = "gate"
    SECTION: ClassVar[type[msgspec.Struct]] = GateConfig


class CacheAddress(KeyOptions, frozen=True, kw_only=True):
    """Options for the cache."""

    TITLE: ClassVar[str] = "cache"
    SECTION: ClassVar[type[msgspec.Struct]] = CacheConfig


MetricCommand = Annotated[
    str,
    Option(
        "gets an artifact's directory as its last argument and prints a number; more is better",
        "COMMAND",
    ),
]
MetricMargin = Annotated[float, Option("how much smaller the metric may be", "N", not_negative)]
Seed = Annotated[
    int | None,
    Option(
        "the seed of an earlier report: the same inputs in the same order; default: a new one",
        "N",
        seed,
    ),
]


class MeasuringOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for measuring builds. The metric is no configuration key: a pull request could choose
    what runs on the runner."""

    TITLE: ClassVar[str] = "measuring"

    metric_command: MetricCommand = ""
    metric_margin: MetricMargin = 0.0
    seed: Seed = None


class ShardMeasuringOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Options for measuring the builds of one shard."""

    TITLE: ClassVar[str] = "measuring"

    metric_command: MetricCommand = ""
    seed: Seed = None


class JudgedMetric(msgspec.Struct, frozen=True, kw_only=True):
    """Options for judging the metric that the shards measured."""

    TITLE: ClassVar[str] = "measuring"

    metric_margin: MetricMargin = 0.0


class CiJob(msgspec.Struct, frozen=True, kw_only=True):
    """The CI that a command is a job of, which knows what to compare."""

    TITLE: ClassVar[str] = "ci jobs"

    ci: Annotated[
        str,
        Option(
            "compare and write what the event of this CI says, and tell it what comes out: auto, "
            "none, or the name of one; default: the CI of this job",
            "NAME",
        ),
    ] = ""
    comment: Annotated[
        CommentWhen,
        Option(
            "when --ci writes the report on the pull request: on-change where a model or a rule "
            "changes, on-alert where somebody has to look; an earlier comment is kept up to date",
            choices=get_args(CommentWhen),
        ),
    ] = "never"


class Options(msgspec.Struct, frozen=True, kw_only=True):
    """Options of every command; each command's own struct derives from it."""

    common: Common = Common()

    @property
    def settings(self) -> Settings:
        """Returns the settings that the shared options produce."""
        groups = [getattr(self, name) for name in self.__struct_fields__]
        given: dict[str, Any] = {}
        values: dict[str, Any] = {}
        for group in groups:
            if isinstance(group, KeyOptions):
                given |= group.given
            elif isinstance(group, msgspec.Struct):
                values |= msgspec.structs.asdict(group)
        fields = {name: values[name] for name in Settings.__struct_fields__ if name in values}
        return Settings(overrides=Overrides(given), **fields)
