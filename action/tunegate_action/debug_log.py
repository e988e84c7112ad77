"""Facts for understanding a job, shown if somebody asked for GitHub's debug log."""

import platform
import sys
from collections.abc import Iterator, Mapping
from importlib.metadata import distributions
from pathlib import Path

import msgspec
import yaml

from tunegate import __version__
from tunegate.errors import TunegateError
from tunegate.redaction import redact, secrets_of
from tunegate.report.escape import drawn_as_text
from tunegate.review.config_file import CONFIG_FILE, load_config

_REFS = ("GITHUB_EVENT_NAME", "GITHUB_REF", "GITHUB_SHA", "GITHUB_HEAD_REF", "GITHUB_BASE_REF")
_JOB = ("GITHUB_ACTION_PATH", "GITHUB_WORKSPACE", "GITHUB_API_URL", "RUNNER_NAME", "RUNNER_ARCH")


def is_debug(environment: Mapping[str, str]) -> bool:
    """Returns whether the job was started again with debug logging."""
    return environment.get("RUNNER_DEBUG") == "1"


def show_debug(environment: Mapping[str, str]) -> None:
    """Prints a group with versions, git's names and the configuration. No line can be taken for a
    GitHub command, and none contains a secret."""
    text = redact("\n".join(_lines(environment)), secrets_of(environment))
    body = "".join(f"| {drawn_as_text(line)}\n" for line in text.splitlines())
    sys.stdout.write(f"::group::tunegate: debug\n{body}::endgroup::\n")
    sys.stdout.flush()


def _lines(environment: Mapping[str, str]) -> Iterator[str]:
    yield f"tunegate {__version__}, Python {platform.python_version()}, {platform.platform()}"
    packages = {f"{distribution.name} {distribution.version}" for distribution in distributions()}
    yield ", ".join(sorted(packages, key=str.lower))
    for name in (*_REFS, *_JOB):
        if value := environment.get(name):
            yield f"{name}: {value}"
    checkout = Path(environment.get("TUNEGATE_PATH", "").strip())
    path = checkout / (environment.get("TUNEGATE_CONFIG") or CONFIG_FILE)
    yield f"{path}, with every default:"
    yield from _config(path).splitlines()


def _config(path: Path) -> str:
    try:
        content = msgspec.to_builtins(load_config(path))
    except TunegateError as error:
        return str(error)
    return yaml.safe_dump(content, allow_unicode=True, sort_keys=False)
