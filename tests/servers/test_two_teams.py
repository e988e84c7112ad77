"""The example examples/two_teams.sh: two repositories and a bucket of a real S3 server."""

import os
import re
import socket
import sys
from pathlib import Path

import pytest

from tests.house.sources import ROOT
from tests.support.programs import run_program
from tests.support.servers.cache_soak import soak


@pytest.mark.pipelines
@pytest.mark.timeout(600)
def test_the_second_team_finds_all_its_tasks_in_what_the_first_has_learned() -> None:
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = str(free.getsockname()[1])
    done = run_program(
        [str(ROOT / "examples" / "two_teams.sh")],
        cwd=ROOT,
        env={
            **os.environ,
            "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
            "PORT": port,
            "MINUTES": "0.5",
        },
        code=0,
    )
    exact, transferred, tasks = map(
        int, re.findall(r"\{'exact': (\d+), 'transfer': (\d+)\} of (\d+) tasks", done.stdout)[0]
    )
    assert exact + transferred == tasks, done.stdout
    assert exact >= 10


# Eight processes on a real server, killed at random, for eight seconds or more. The ten minutes
# are in benchmarks/cache/cache_soak.py.


@pytest.mark.e2e
def test_killed_processes_lose_nothing_that_was_acknowledged(
    tmp_path: Path, endpoint: str, credentials: None
) -> None:
    soaked = soak(endpoint, tmp_path, seconds=8, seed=1, records=9)
    assert soaked.acknowledged > 8
    assert soaked.compactions > 0
    assert soaked.kills > 3
    assert soaked.visible == soaked.acknowledged
    assert soaked.gaps == 0
