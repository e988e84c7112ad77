"""The real action.yml in one step of a job, with the event, the files and the variables that
GitHub's runner gives it."""

import json
import os
import shutil
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple

from tests.support.programs import run_program
from tunegate_environment.seal import seal

ROOT = Path(__file__).resolve().parents[2]


class Event(NamedTuple):
    """The event that started the workflow."""

    name: str
    payload: Mapping[str, Any]


def run_action(
    event: Event,
    inputs: Mapping[str, str],
    *,
    workspace: Path,
    temp: Path,
    node_modules: Path,
    variables: Mapping[str, str] | None = None,
) -> dict[str, Any]:
    """The exit code, the outputs, the summary and the log of the action. `variables` are in the
    runner's environment besides; of a PYTHONPATH the packages are in the action's own."""
    event_file = temp / "event.json"
    event_file.write_text(json.dumps(event.payload))
    context = {
        "inputs": dict(inputs),
        "github": {"workspace": str(workspace), "token": ""},
        "temp": str(temp),
        "env": {
            "PATH": os.environ["PATH"],
            "HOME": str(temp),
            "GITHUB_EVENT_NAME": event.name,
            "GITHUB_EVENT_PATH": str(event_file),
            "GITHUB_REPOSITORY": "acme/models",
            "GITHUB_WORKSPACE": str(workspace),
            "RUNNER_TOOL_CACHE": str(_tool_cache(temp, (variables or {}).get("PYTHONPATH", ""))),
            **(variables or {}),
        },
    }
    context_file = temp / "context.json"
    context_file.write_text(json.dumps(context))
    done = run_program(
        ["node", "composite_runner.mjs", str(ROOT), str(context_file)], cwd=node_modules, check=True
    )
    result: dict[str, Any] = json.loads(done.stdout)
    return result


def _tool_cache(temp: Path, packages: str) -> Path:
    """The locked environment as an earlier job of this runner left it: that of these tests, with
    what is at `packages`."""
    system = shutil.which("python3") or sys.executable
    directory = temp / "tools" / "tunegate" / "env" / key_by(system)
    (directory / "bin").mkdir(parents=True, exist_ok=True)
    python = directory / "bin" / "python"
    path = f"PYTHONPATH={packages}:$PYTHONPATH " if packages else ""
    python.write_text(f'#!/bin/sh\n{path}exec "{sys.executable}" "$@"\n')
    python.chmod(0o755)
    seal(directory)
    return temp / "tools"


def key_by(python: str) -> str:
    """The name that the environment has where this Python starts the action."""
    script = (
        "from tunegate_environment.kept import key_of, Path; "
        f"print(key_of(Path({str(ROOT)!r}, 'requirements', 'run.lock')))"
    )
    return run_program([python, "-c", script], cwd=ROOT / "action", check=True).stdout.strip()
