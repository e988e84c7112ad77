"""The action's composition root: the environment in, tunegate run, its results said to GitHub."""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate import cli
from tunegate.artifacts.changes import Revisions
from tunegate.errors import TunegateError
from tunegate.revisions import find_revisions
from tunegate_action.activity import command_line
from tunegate_action.comment import publish
from tunegate_action.event import Event, read_event
from tunegate_action.github import GitHub, GitHubRefusedError
from tunegate_action.inputs import Inputs, read_inputs
from tunegate_action.results import Results, read_results
from tunegate_action.workflow import annotation, append, commands_stopped, cut, output


def entry() -> None:
    sys.exit(main(os.environ))


def main(environment: Mapping[str, str]) -> int:
    """The exit code of tunegate; what GitHub refuses never changes it."""
    try:
        inputs = read_inputs(environment)
        event = read_event(environment, _payload(environment))
        revisions = _revisions(inputs, event)
    except TunegateError as error:
        _say(annotation("error", "tunegate", str(error)))
        return error.exit_code
    if revisions is not None:
        _say(f"tunegate: head {revisions.head[:12]}, base {revisions.base} ({revisions.reason})")
    with commands_stopped(sys.stdout):
        code = cli.main(command_line(inputs, event, revisions))
    results = read_results(inputs.out)
    _report(environment, inputs, event, results)
    return code


def _revisions(inputs: Inputs, event: Event) -> Revisions | None:
    if inputs.stage not in {"all", "plan"} or inputs.since_release:
        return None
    if inputs.base or inputs.head:
        return find_revisions(Path(), "given", inputs.base, inputs.head)
    return find_revisions(Path(), event.strategy, event.first, event.second)


def _report(environment: Mapping[str, str], inputs: Inputs, event: Event, results: Results) -> None:
    for name, value in results.outputs().items():
        append(environment.get("GITHUB_OUTPUT", ""), output(name, value))
    for line in results.annotations():
        _say(line)
    if not results.markdown:
        return
    append(environment.get("GITHUB_STEP_SUMMARY", ""), cut(results.markdown))
    if inputs.comment and inputs.token and event.pull_request is not None:
        api = environment.get("GITHUB_API_URL", "https://api.github.com")
        github = GitHub(api, event.repository, inputs.token)
        try:
            publish(github, event.pull_request, str(inputs.out), results.markdown)
        except GitHubRefusedError as error:
            text = f"{error}: the report is in the step summary instead"
            _say(annotation("notice", "tunegate: no comment", text))


def _payload(environment: Mapping[str, str]) -> Mapping[str, Any]:
    path = environment.get("GITHUB_EVENT_PATH", "")
    try:
        payload: Mapping[str, Any] = json.loads(Path(path).read_text("utf-8")) if path else {}
    except (OSError, ValueError):
        return {}
    return payload


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()
