"""The findings that block a merge as SARIF 2.1.0, for code-scanning views."""

from __future__ import annotations

import hashlib
from importlib.metadata import version
from typing import Literal
from urllib.parse import quote

import msgspec

from tunegate.artifacts.verdicts import Finding, Report, Status, Verdict
from tunegate.render.escape import visible
from tunegate.render.headline import reason

SCHEMA = "https://json.schemastore.org/sarif-2.1.0.json"
Level = Literal["error", "warning"]


class Text(msgspec.Struct, frozen=True):
    text: str


class Rule(msgspec.Struct, frozen=True, rename="camel"):
    """What a kind of finding means; `level` is of its results."""

    id: str
    name: str
    short_description: Text
    help: Text


class Place(msgspec.Struct, frozen=True, rename="camel"):
    uri: str
    uri_base_id: str = "%SRCROOT%"


class Region(msgspec.Struct, frozen=True, rename="camel"):
    start_line: int = 1


class PhysicalLocation(msgspec.Struct, frozen=True, rename="camel"):
    artifact_location: Place
    region: Region = Region()


class Location(msgspec.Struct, frozen=True, rename="camel"):
    physical_location: PhysicalLocation


class Result(msgspec.Struct, frozen=True, rename="camel", kw_only=True):
    rule_id: str
    rule_index: int
    level: Level
    message: Text
    locations: tuple[Location, ...]
    partial_fingerprints: dict[str, str]


class Driver(msgspec.Struct, frozen=True):
    name: str
    version: str
    rules: tuple[Rule, ...]


class Tool(msgspec.Struct, frozen=True):
    driver: Driver


class Run(msgspec.Struct, frozen=True, rename="camel"):
    tool: Tool
    results: tuple[Result, ...]
    column_kind: str = "unicodeCodePoints"


class Log(msgspec.Struct, frozen=True):
    runs: tuple[Run, ...]
    schema: str = msgspec.field(default=SCHEMA, name="$schema")
    version: str = "2.1.0"


def _rule(identity: str, name: str, short: str, advice: str) -> Rule:
    return Rule(identity, name, Text(short), Text(advice))


RULES: dict[Status, tuple[Level, Rule]] = {
    "fail": (
        "error",
        _rule(
            "latency-regression",
            "LatencyRegression",
            "The model got slower by more than the margin.",
            "The report names the operators that hold the difference.",
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
            "The measuring budget ended before the change was told from the margin.",
            "Raise gate.seconds or measure on a quieter runner.",
        ),
    ),
    "invalid-env": (
        "warning",
        _rule(
            "machine-unfit",
            "MachineUnfit",
            "The machine was too disturbed to measure on.",
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


def render(report: Report) -> str:
    """A log of one run: every rule, and a result for every finding that is not green."""
    rules = tuple(rule for _, rule in RULES.values())
    driver = Driver("tunegate", version("tunegate"), rules)
    verdict = report.verdict
    results = tuple(_result(each, verdict) for each in verdict.findings if each.status in RULES)
    log = Log((Run(Tool(driver), results),))
    return msgspec.json.format(msgspec.json.encode(log), indent=2).decode() + "\n"


def _result(finding: Finding, verdict: Verdict) -> Result:
    level, rule = RULES[finding.status]
    said = f"{finding.model} on {finding.target}: {reason(finding, verdict)}"
    return Result(
        rule_id=rule.id,
        rule_index=list(RULES).index(finding.status),
        level=level,
        message=Text(visible(said, 1000)),
        locations=(
            Location(PhysicalLocation(Place(quote(finding.model.encode(errors="surrogatepass"))))),
        ),
        partial_fingerprints={"modelAndTarget/v1": _fingerprint(finding, rule)},
    )


def _fingerprint(finding: Finding, rule: Rule) -> str:
    """The same for the same trouble of the same model, however large it is this time."""
    identity = f"{rule.id}\0{finding.model}\0{finding.target}"
    return hashlib.sha256(identity.encode(errors="surrogatepass")).hexdigest()
