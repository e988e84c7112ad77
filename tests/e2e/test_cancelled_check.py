"""A job of GitHub that is cancelled: its check ends as cancelled, whenever the signal comes."""

import json
import signal
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.adversary.pull_request import GATED, PullRequest
from tests.ci.github.github_server import GitHubServer, github_server
from tests.support.git_repository import Checkout

pytestmark = pytest.mark.e2e

ENDLESS = GATED.replace("pairs: 4\n  seconds: 30", "pairs: 24\n  seconds: 600")
END = "PATCH /repos/acme/models/check-runs/1"
LINE = (sys.executable, "-P", "-m", "tunegate_action")
DROPS = """\
import os, runpy, signal, sys

place = sys.argv.pop()

def drop(frame, event, argument):
    if event == "call" and f"{frame.f_code.co_filename}:{frame.f_code.co_name}".endswith(place):
        sys.setprofile(None)
        try:
            os.kill(os.getpid(), signal.SIGINT)
            for _ in range(1000):  # here Python raises
                pass
        except KeyboardInterrupt:
            print("dropped", flush=True)

sys.setprofile(drop)
runpy.run_module("tunegate_action", run_name="__main__", alter_sys=True)
"""
"""The action, in a library of which the interrupt comes and is dropped, as C code can."""


@pytest.fixture
def server() -> Iterator[GitHubServer]:
    with github_server() as made:
        yield made


class Started:
    """The process of the action that works, on a pull request."""

    def __init__(
        self, root: Path, server: GitHubServer, *, changes_model: bool, line: tuple[str, ...] = LINE
    ) -> None:
        self.root, self.server = root, server
        self.pull_request = PullRequest(root, ENDLESS)
        if changes_model:
            self.pull_request.make_twice_as_slow()
        self.pull_request.workspace.commit()
        self.process = self.pull_request.workspace.started(*line, **self._variables())

    def send(self, number: signal.Signals, when: Callable[[], object]) -> None:
        """Sends the signal as soon as that holds."""
        deadline = time.monotonic() + 60
        while not when() and self.process.poll() is None and time.monotonic() < deadline:
            time.sleep(0.01)
        assert when(), self.process.communicate()
        self.process.send_signal(number)

    def ended(self) -> str:
        """Asserts that everybody was told of a cancel, and returns what was printed."""
        with self.process:
            said = self.process.communicate(timeout=240)
        assert self.process.returncode == 130, said
        (check,) = self.server.checks
        assert (check["status"], check.get("conclusion")) == ("completed", "cancelled"), said
        assert "cancelled" in (self.root / "summary").read_text()
        return said[0]

    def _variables(self) -> dict[str, str]:
        event = self.root / "event.json"
        event.write_text(json.dumps(self._payload()))
        return {
            **self.server.variables,
            "GITHUB_ACTIONS": "true",
            "GITHUB_EVENT_NAME": "pull_request",
            "GITHUB_EVENT_PATH": str(event),
            "GITHUB_OUTPUT": str(self.root / "output"),
            "GITHUB_STEP_SUMMARY": str(self.root / "summary"),
            "TUNEGATE_GITHUB_TOKEN": "ghs_secret",
        }

    def _payload(self) -> dict[str, object]:
        checkout = Checkout(self.pull_request.root)
        head, base = (checkout.git("rev-parse", name) for name in ("HEAD", "main"))
        repository = {"full_name": "acme/models", "default_branch": "main"}
        pull = {
            "number": 7,
            "head": {"sha": head, "repo": repository},
            "base": {"sha": base, "ref": "main"},
        }
        return {"pull_request": pull, "repository": repository}


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_as_soon_as_the_check_has_begun_cancels_it(
    number: signal.Signals, tmp_path: Path, server: GitHubServer
) -> None:
    started = Started(tmp_path, server, changes_model=True)
    started.send(number, lambda: server.checks)
    started.ended()


def test_a_signal_while_it_measures_cancels_the_check(tmp_path: Path, server: GitHubServer) -> None:
    started = Started(tmp_path, server, changes_model=True)
    started.send(signal.SIGINT, (tmp_path / "checkout" / ".tunegate" / "plan.json").exists)
    started.ended()


@pytest.mark.parametrize(
    "place",
    [
        "cli/handlers/run.py:<module>",
        "measure/bench_process.py:block",
        "pipeline.py:decide",
        "report/html.py:<module>",
        "ci/job.py:_report_results",
    ],
)
def test_an_interrupt_that_a_library_drops_cancels_the_check_all_the_same(
    place: str, tmp_path: Path, server: GitHubServer
) -> None:
    line = (sys.executable, "-P", "-c", DROPS, place)
    started = Started(tmp_path, server, changes_model=place.startswith("measure/"), line=line)
    assert "dropped" in started.ended()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_while_the_end_is_told_cancels_the_check(
    number: signal.Signals, tmp_path: Path, server: GitHubServer
) -> None:
    """The server is busy when it is told of the end, which would be asked for again."""
    server.first[END] = [(503, {"Retry-After": "10"}, {})]
    started = Started(tmp_path, server, changes_model=False)
    started.send(number, lambda: END in server.requests)
    started.ended()
