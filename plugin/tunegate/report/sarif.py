"""The findings that block a merge as SARIF 2.1.0, for code-scanning views."""

import hashlib
from typing import Literal
from urllib.parse import quote

import msgspec

from tunegate import __version__
from tunegate.artifacts.changes import PolicyChange, path_of
from tunegate.artifacts.verdicts import Finding, Report, Status, Verdict
from tunegate.report.accuracy import ERROR_MOVED, error_moves
from tunegate.report.escape import visible
from tunegate.report.headline import POLICY_CHANGE, described_change, reason

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
_Level = Literal["error", "warning"]


class Text(msgspec.Struct, frozen=True):
    text: str


class SarifRule(msgspec.Struct, frozen=True, rename="camel"):
    """The meaning of a kind of finding. Code scanning requires the full description, too."""

    id: str
    name: str
    short_description: Text
    full_description: Text
    help: Text


class SarifPlace(msgspec.Struct, frozen=True, rename="camel"):
    uri: str
    uri_base_id: str = "%SRCROOT%"


class Region(msgspec.Struct, frozen=True, rename="camel"):
    start_line: int = 1


class PhysicalLocation(msgspec.Struct, frozen=True, rename="camel"):
    artifact_location: SarifPlace
    region: Region = Region()


class Location(msgspec.Struct, frozen=True, rename="camel"):
    physical_location: PhysicalLocation


class Result(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    rule_id: str
    rule_index: int
    level: _Level
    message: Text
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]


class Driver(msgspec.Struct, frozen=True):
    name: str
    version: str
    rules: tuple[SarifRule, ...]


class Tool(msgspec.Struct, frozen=True):
    driver: Driver


class SarifRun(msgspec.Struct, frozen=True, rename="camel"):
    tool: Tool
    results: tuple[Result, ...]
    column_kind: str = "unicodeCodePoints"


class SarifLog(msgspec.Struct, frozen=True):
    runs: tuple[SarifRun, ...]
    schema: str = msgspec.field(default=SCHEMA, name="$schema")
    version: str = "2.1.0"


def _rule(identity: str, name: str, short: str, advice: str) -> SarifRule:
    return SarifRule(identity, name, Text(short), Text(f"{short} {advice}"), Text(advice))


SARIF_RULES: dict[Status, tuple[_Level, SarifRule]] = {
    "fail": (
        "error",
        _rule(
            "regression",
            "Regression",
            "The model got slower, larger or worse than a margin allows.",
            "The message names the margin. The report names the operators that got slower.",
        ),
    ),
    "error": (
        "error",
        _rule(
            "build-error",
            "BuildError",
            "The model could not be built, or its numbers are wrong.",
            "Repair the error in the message and run again.",
        ),
    ),
    "inconclusive": (
        "warning",
        _rule(
            "latency-undecided",
            "LatencyUndecided",
            "The time for measuring ended before the gate could decide.",
            "Raise --gate-seconds or measure on a quieter runner.",
        ),
    ),
    "invalid-env": (
        "warning",
        _rule(
            "machine-unfit",
            "MachineUnfit",
            "The machine was too noisy to measure on.",
            "Run again on a runner with nothing else on it.",
        ),
    ),
    "no-baseline": (
        "warning",
        _rule(
            "no-baseline",
            "NoBaseline",
            "There is nothing to compare the model with.",
            "Fetch more history or name a revision with --base.",
        ),
    ),
}


POLICY_RULE = _rule(
    POLICY_CHANGE,
    "PolicyChange",
    "The change loosens the rules of its own gate.",
    "It has no effect on the verdict before it is merged. Ask the rules' owners to review it.",
)
ERROR_RULE = _rule(
    ERROR_MOVED,
    "ErrorMoved",
    "The model got less exact, and not clearly faster.",
    "The report has the errors of base and head, and the budget that both are in.",
)
CONFIGURATION = "tunegate.yaml"


def render(report: Report) -> str:
    """Returns a log of one run: every rule, and a result for every change that loosens the rules,
    every finding that is not green, and every error that grew for nothing."""
    rules = (*(rule for _, rule in SARIF_RULES.values()), POLICY_RULE, ERROR_RULE)
    driver = Driver("tunegate", __version__, rules)
    verdict = report.verdict
    policy = (
        _policy_result(policy_change, verdict)
        for policy_change in verdict.policy_changes
        if policy_change.weakens
    )
    results = (
        _result(finding, verdict) for finding in verdict.findings if finding.status in SARIF_RULES
    )
    moves = (
        _error_result(finding, move)
        for finding in verdict.findings
        for move in error_moves(finding, str)
    )
    log = SarifLog((SarifRun(Tool(driver), (*policy, *results, *moves)),))
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _policy_result(change: PolicyChange, verdict: Verdict) -> Result:
    file = change.key if change.key.endswith((".yaml", ".yml")) else CONFIGURATION
    return Result(
        rule_id=POLICY_RULE.id,
        rule_index=len(SARIF_RULES),
        level="error" if verdict.policy_fails else "warning",
        message=Text(visible(described_change(change), 1000)),
        locations=(_location(file),),
        partial_fingerprints={
            "policyKey/v1": _fingerprint(POLICY_RULE, change.key, change.model, change.target)
        },
    )


def _result(finding: Finding, verdict: Verdict) -> Result:
    level, rule = SARIF_RULES[finding.status]
    text = f"{finding.model} on {finding.target}: {reason(finding, verdict)}"
    return Result(
        rule_id=rule.id,
        rule_index=list(SARIF_RULES).index(finding.status),
        level=level,
        message=Text(visible(text, 1000)),
        locations=(_location(path_of(finding.model)),),
        partial_fingerprints={
            "modelAndTarget/v1": _fingerprint(rule, finding.model, finding.target)
        },
    )


def _error_result(finding: Finding, message: str) -> Result:
    return Result(
        rule_id=ERROR_RULE.id,
        rule_index=len(SARIF_RULES) + 1,
        level="warning",
        message=Text(visible(message, 1000)),
        locations=(_location(path_of(finding.model)),),
        partial_fingerprints={
            "modelAndTarget/v1": _fingerprint(ERROR_RULE, finding.model, finding.target)
        },
    )


def _location(path: str) -> Location:
    return Location(PhysicalLocation(SarifPlace(quote(path.encode(errors="surrogatepass")))))


def _fingerprint(rule: SarifRule, *parts: str) -> str:
    """Returns the same text for the same trouble in the same place, however large it is."""
    identity = "\0".join((rule.id, *parts))
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
