"""The attack that every other one hides: a model that is twice as slow."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.adversary.pull_request import PullRequest
from tests.support.workspace import Workspace

pytestmark = pytest.mark.e2e


def test_a_model_that_is_twice_as_slow_fails(pull_request: PullRequest) -> None:
    pull_request.make_twice_as_slow()
    assert pull_request.judge(code=1).status() == "fail"


def test_the_same_model_passes(pull_request: PullRequest) -> None:
    pull_request.write("README.md", "words")
    pull_request.judge(code=0)


# Commands that are slow only sometimes: in some of their starts, or in some of their inferences.

CONFIG = """\
models:
  - path: "*.onnx"
gate:
  seconds: 8
"""
PROGRAM = """\
import pathlib, random, sys
counter = pathlib.Path(sys.argv[1])
start = int(counter.read_text()) if counter.exists() else 0
counter.write_text(str(start + 1))
for inference in range(120):
    slow = {slow}
    print(5 * random.gauss(1, 0.002) * slow)
"""
NEVER = "1"
FAILS = {
    "every third inference": "3 if inference % 3 == 0 else 1",
    "every tenth inference": "4 if inference % 10 == 0 else 1",
    "a long one in fifty": "12 if inference % 50 == 7 else 1",
}
IS_NO_PASS = {
    "often in every third start": "2.5 if start % 3 == 0 else 1",
    "every fourth start, after four that are not": "1.3 if start > 3 and start % 4 == 0 else 1",
    "every fifth start, twice as slow": "2 if start > 3 and start % 5 == 0 else 1",
    "every third inference of every fourth start": (
        "3 if start > 3 and start % 4 == 0 and inference % 3 == 0 else 1"
    ),
}


class Compared:
    """The head is slow as it says, the base never."""

    def __init__(self, directory: Path, slow: str) -> None:
        workspace = Workspace(directory / "checkout", CONFIG)
        lines = []
        for side, how in (("base", NEVER), ("head", slow)):
            program = directory / f"{side}.py"
            program.write_text(PROGRAM.format(slow=how))
            lines.append(f"{sys.executable} {program} {directory / side}")
        done = workspace.tunegate("compare", "--commands", *lines, "--json")
        self.exit_code, self.err = done.returncode, done.stderr
        self.finding: dict[str, Any] = json.loads(done.stdout)["findings"][0]


@pytest.mark.parametrize("how", FAILS)
def test_what_the_mean_proves_fails(tmp_path: Path, how: str) -> None:
    found = Compared(tmp_path, FAILS[how])
    assert found.exit_code == 1, found.finding["reason"]


@pytest.mark.parametrize("how", IS_NO_PASS)
def test_a_slow_start_now_and_then_is_no_pass(tmp_path: Path, how: str) -> None:
    found = Compared(tmp_path, IS_NO_PASS[how])
    assert found.exit_code in {1, 3}, found.finding["reason"]
    if found.exit_code == 3:
        assert "starts of the head" in found.finding["reason"]


def test_without_a_change_it_passes_and_says_what_is_excluded(tmp_path: Path) -> None:
    found = Compared(tmp_path, NEVER)
    assert found.exit_code == 0, found.finding["reason"]
    assert "fewer than 20% of launches are slow, with 95% confidence" in (found.finding["reason"])
    assert found.finding["excluded"]["starts"] >= 16
    expected = {"mean", "mean-of-all", "p90", "p99"}
    assert {each["what"] for each in found.finding["inside"]} == expected
