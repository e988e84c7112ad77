"""The action's composition root: the environment in, tunegate run, its results said to GitHub."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate.artifacts.changes import Revisions
from tunegate.cli.main import carried_out
from tunegate.cli.unexpected import Ending
from tunegate.errors import BUG, FAIL, PASS, ConfigError, TunegateError
from tunegate.revisions import find_revisions, is_of_pull_request, require_checkout
from tunegate_action.activity import command_line
from tunegate_action.comment import publish
from tunegate_action.config_place import place_of
from tunegate_action.event import Event, read_event
from tunegate_action.github import GitHub, GitHubRefusedError
from tunegate_action.inputs import Inputs, read_inputs
from tunegate_action.problem import problem
from tunegate_action.results import Results, read_results, stamps
from tunegate_action.workflow import annotation, append, commands_stopped, cut, output

_JUDGING = {"all", "gate"}


def main(environment: Mapping[str, str]) -> int:
    """The exit code of tunegate; what GitHub refuses never changes it."""
    try:
        inputs = read_inputs(environment)
        event = read_event(environment, _payload(environment), inputs)
        revisions = _revisions(inputs, event)
    except TunegateError as error:
        return stopped(environment, str(error), error.exit_code)
    if revisions is not None:
        _say(f"tunegate: head {revisions.head[:12]}, base {revisions.base} ({revisions.reason})")
    before = stamps(inputs.out)
    ending = _carried_out(command_line(inputs, event, revisions))
    results = read_results(inputs.out, before, ending.exit_code)
    ending = _truthful(inputs, ending, results)
    _report(environment, inputs, event, results)
    if ending.problem:
        return stopped(environment, ending.problem, ending.exit_code)
    return ending.exit_code


def stopped(environment: Mapping[str, str], text: str, exit_code: int) -> int:
    """Say what went wrong where people look: beside the run, and in the summary of the step."""
    workspace = Path(environment.get("GITHUB_WORKSPACE") or ".")
    found = problem(text, exit_code, environment, place_of(text, workspace))
    _say(found.annotation())
    append(environment.get("GITHUB_OUTPUT", ""), output("verdict", "error"))
    append(environment.get("GITHUB_STEP_SUMMARY", ""), found.markdown())
    return exit_code


def _carried_out(line: list[str]) -> Ending:
    with commands_stopped(sys.stdout):
        return carried_out(line)


def _truthful(inputs: Inputs, ending: Ending, results: Results) -> Ending:
    """A pass and a regression are let out only with the verdict that this run wrote."""
    is_judged = inputs.stage in _JUDGING
    if ending.exit_code not in {PASS, FAIL} or (ending.exit_code == PASS and not is_judged):
        return ending
    if is_judged and results.verdict is not None:
        return ending
    return Ending(BUG, f"a bug of tunegate: exit code {ending.exit_code} without a verdict")


def _revisions(inputs: Inputs, event: Event) -> Revisions | None:
    """Every stage sees that the checkout is what the event is about. A later stage refuses a plan of
    other revisions; None where looking again may find others, such as a branch that has moved.
    Raises TunegateError."""
    if not inputs.head:
        require_checkout(Path(), event.strategy, event.tip, event.checked_out)
    is_later = inputs.stage not in {"all", "plan"}
    if inputs.since_release or (is_later and not _is_settled(inputs, event)):
        return None
    if inputs.base or inputs.head:
        return find_revisions(Path(), "given", inputs.base, inputs.head)
    return find_revisions(Path(), event.strategy, event.first, event.second)


def _is_settled(inputs: Inputs, event: Event) -> bool:
    """Whether the event alone says both commits."""
    return not (inputs.base or inputs.head) and event.strategy in {"merge-commit", "range"}


def _report(environment: Mapping[str, str], inputs: Inputs, event: Event, results: Results) -> None:
    for name, value in results.outputs().items():
        append(environment.get("GITHUB_OUTPUT", ""), output(name, value))
    for line in results.annotations():
        _say(line)
    if not results.markdown:
        return
    append(environment.get("GITHUB_STEP_SUMMARY", ""), cut(results.markdown))
    number = _commented(inputs, event, results)
    if number is not None:
        api = environment.get("GITHUB_API_URL", "https://api.github.com")
        github = GitHub(api, event.repository, inputs.token)
        try:
            publish(github, number, str(inputs.out), results.markdown)
        except GitHubRefusedError as error:
            text = f"{error}: the report is in the step summary instead"
            _say(annotation("notice", "tunegate: no comment", text))


def _commented(inputs: Inputs, event: Event, results: Results) -> int | None:
    """The pull request whose head or merge commit was judged; what was judged of another commit is
    not written there."""
    if not inputs.comment or not inputs.token or results.verdict is None:
        return None
    is_its = is_of_pull_request(Path(), results.verdict.revisions.head, event.tip)
    return event.pull_request if is_its else None


def _payload(environment: Mapping[str, str]) -> Mapping[str, Any]:
    """Raises ConfigError."""
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        payload = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError, RecursionError) as error:
        message = f"GITHUB_EVENT_PATH: {path} cannot be read ({error})."
        raise ConfigError(message) from error
    if not isinstance(payload, dict):
        message = f"GITHUB_EVENT_PATH: {path} holds no event."
        raise ConfigError(message)
    return payload


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
