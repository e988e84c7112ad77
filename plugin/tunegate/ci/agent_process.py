"""The agent of a CI as a child process, which gets a host's messages and nothing else.

It works in no directory of anybody's, and gets those variables of the job that the command names.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping
from pathlib import Path

from tunegate.ci.protocol import AgentCommand
from tunegate.system.processes.interpreter import child_environment

_LIMIT_SECONDS = 60.0
_NOWHERE = "/"


def told_by_agent(command: AgentCommand, environment: Mapping[str, str]) -> str:
    """Asks the agent, and returns why it did not do it, without what it printed; '' where it
    did."""
    program = _program(command, environment.get("PATH", ""))
    if program is None:
        return f"{command.program} was not found"
    named = {name: environment[name] for name in command.variables if name in environment}
    try:
        done = subprocess.run(
            [program, *command.arguments],
            input=command.text.encode(errors="replace"),
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            env=child_environment(named),
            cwd=_NOWHERE,
            timeout=_LIMIT_SECONDS,
            check=False,
        )
    except subprocess.TimeoutExpired:
        return f"{command.program} did not end in {_LIMIT_SECONDS:.0f} s"
    except OSError as error:
        return f"{command.program} cannot be run ({error.strerror})"
    return f"{command.program} exited with {done.returncode}" if done.returncode else ""


def _program(command: AgentCommand, searched: str) -> str | None:
    places = [command.directory, *searched.split(os.pathsep)]
    absolute = [place for place in places if Path(place).is_absolute()]
    return shutil.which(command.program, path=os.pathsep.join(absolute)) if absolute else None
