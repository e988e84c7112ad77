"""The extras of this project that may not be installed: what each offers, for the line that says
what to install. Only this table names them; docs/extras.md describes them."""

from collections.abc import Container, Mapping
from typing import Literal, NamedTuple

from tunegate.errors import ConfigError

Kind = Literal["command", "CI", "runtime", "store", "executor", "key", "artifact"]
GROUPS: Mapping[Kind, str] = {
    "command": "tunegate.cli.handlers",
    "CI": "tunegate.ci",
    "runtime": "tunegate.runtimes",
    "store": "tunegate.stores",
    "executor": "tunegate.workers",
    "key": "tunegate.upgrades",
    "artifact": "tunegate.tvm_forms",
}
"""The entry-point group of each kind. A key is one of the configuration that an extra reads."""


class KnownExtra(NamedTuple):
    """`name` is what pip is asked for. `jobs` has, for a CI, the variables that each job of it
    has."""

    name: str
    offers: Mapping[Kind, tuple[str, ...]]
    jobs: Mapping[str, tuple[str, ...]] = {}


KNOWN_EXTRAS = (
    KnownExtra(
        "ci-hosts",
        {"CI": ("azure", "bitbucket", "buildkite", "circleci", "jenkins")},
        {
            "azure": ("TF_BUILD",),
            "bitbucket": ("BITBUCKET_BUILD_NUMBER", "BITBUCKET_COMMIT"),
            "buildkite": ("BUILDKITE",),
            "circleci": ("CIRCLECI",),
            "jenkins": ("JENKINS_URL", "BUILD_TAG"),
        },
    ),
    KnownExtra("deploy", {"command": ("deploy-gate", "attest", "verify")}),
    KnownExtra("history", {"command": ("history", "bisect")}),
    KnownExtra("study", {"command": ("study", "selftest")}),
    KnownExtra("ray", {"executor": ("ray",)}),
    KnownExtra("upgrades", {"key": ("watch.files",)}),
    KnownExtra("whole-model", {"artifact": ("native", "native_whole", "whole")}),
    KnownExtra("tuners", {"command": ("lent-gc",)}),
    KnownExtra("exchange", {"command": ("cache export", "cache import")}),
)


def missing(kind: Kind, name: str) -> str:
    """Returns what to install for something that is not installed; empty where no extra has it."""
    for extra in KNOWN_EXTRAS:
        if name in extra.offers.get(kind, ()):
            return f"{_describe_offer(kind, name)} is not installed. {_how_to_install(extra)}"
    return ""


def refuse_missing(kind: Kind, name: str) -> None:
    """Raises ConfigError where an extra has what is asked for, and is not installed."""
    if line := missing(kind, name):
        raise ConfigError(line)


def refuse_missing_ci(environment: Mapping[str, str], ci_names: Container[str]) -> None:
    """Raises ConfigError in a job of a CI that an extra knows. Taken for a job of no CI, a pull
    request could write what only the default branch may."""
    for extra in KNOWN_EXTRAS:
        for name, variables in extra.jobs.items():
            if name not in ci_names and all(environment.get(variable) for variable in variables):
                message = (
                    f"this is a job of {name} ({variables[0]} is set), and CI {name} is not "
                    f"installed. Write --ci none to go on without it. {_how_to_install(extra)}"
                )
                raise ConfigError(message)


def _describe_offer(kind: Kind, name: str) -> str:
    if kind == "key":
        return f"{name} is in the configuration, and what reads it"
    return f"tunegate {name}" if kind == "command" else f"{kind} {name}"


def _how_to_install(extra: KnownExtra) -> str:
    """Returns a sentence without a period at its end: the command is copied into a shell."""
    return f'Install it: pip install "tunegate[{extra.name}]"'
