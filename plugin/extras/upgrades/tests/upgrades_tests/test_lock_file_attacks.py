"""A pull request whose lock file is meant to bring code, or to hide a slower runtime."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.adversary.pull_request import REQUIRED, PullRequest
from tests.support.servers.package_index import Index, serving_packages, small_wheel
from tests.support.workspace import FIRST_ANALYSIS

USUAL = """
import importlib, sys, time
from pathlib import Path
here = str(Path(__file__).resolve().parent)
del sys.modules["onnxruntime"]
searched = list(sys.path)
sys.path[:] = [place for place in searched if place != here]
real = importlib.import_module("onnxruntime")
sys.path[:] = searched
"""
"""The ONNX Runtime of this machine, as a package of an index."""
SLOW = """
def slower(run):
    def run_slower(*arguments, **named):
        until = time.perf_counter() + 0.002
        while time.perf_counter() < until:
            pass
        return run(*arguments, **named)
    return run_slower
for name in ("run", "run_with_iobinding", "run_with_ort_values"):
    setattr(real.InferenceSession, name, slower(getattr(real.InferenceSession, name)))
"""
LOCK = "requirements.txt"


@pytest.fixture
def index(tmp_path: Path) -> Iterator[Index]:
    wheels = tmp_path / "wheels"
    wheels.mkdir()
    small_wheel(wheels, "onnxruntime", USUAL, "9.0", needs=["arrays"])
    small_wheel(wheels, "onnxruntime", USUAL + SLOW, "9.1", needs=["arrays"])
    small_wheel(wheels, "arrays", version="1.0")
    with serving_packages(wheels) as server:
        yield server


@pytest.fixture
def other(tmp_path: Path) -> Iterator[Index]:
    """An index of the attacker's."""
    wheels = tmp_path / "other"
    wheels.mkdir()
    small_wheel(wheels, "onnxruntime", "raise SystemExit(0)\n", "9.1", needs=["arrays"])
    with serving_packages(wheels) as server:
        yield server


@pytest.fixture
def request_of(tmp_path: Path, index: Index) -> PullRequest:
    watch = f"watch:\n  files: [{LOCK}]\n  indexes: ['{index.address}']\n"
    made = PullRequest(tmp_path / "pr", REQUIRED + FIRST_ANALYSIS + watch)
    made.write(LOCK, "onnxruntime==9.0\narrays==1.0\n")
    made.commit_base()
    return made


def test_a_slower_runtime_is_found(request_of: PullRequest) -> None:
    """Among several packages that changed it is searched for: test_package_search.py."""
    request_of.write(LOCK, "onnxruntime==9.1\narrays==1.0\n")
    done = request_of.judge()
    assert done.exit_code == 1, done.err
    (finding,) = done.verdict["findings"]
    assert finding["model"] == "models/m.onnx (onnxruntime of requirements.txt)"
    assert "onnxruntime 9.0 -> 9.1 is all that differs" in finding["reason"]


def test_packages_that_no_runtime_needs_change_nothing(request_of: PullRequest) -> None:
    request_of.write(LOCK, "onnxruntime==9.0\narrays==1.0\nelsewhere==3\n")
    done = request_of.judge()
    assert done.exit_code == 0, done.err
    (finding,) = done.verdict["findings"]
    assert finding["reason"] == "the packages that it needs are the same, not measured"


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("--extra-index-url {other}\nonnxruntime==9.1\narrays==1.0\n", "not in watch.indexes"),
        ("onnxruntime @ {place}/onnxruntime-9.1-py3-none-any.whl\narrays==1.0\n", "taken from"),
        ("onnxruntime==9.1\n", "arrays is needed and not pinned"),
        ("onnxruntime==9.7\narrays==1.0\n", "onnxruntime==9.7"),
    ],
)
def test_no_code_comes_from_elsewhere(
    text: str, why: str, request_of: PullRequest, other: Index
) -> None:
    place = other.address.removesuffix("simple") + "files"
    request_of.write(LOCK, text.format(other=other.address, place=place))
    done = request_of.judge()
    assert done.exit_code == 2, done.err
    assert why in " ".join(done.err.split())
    assert other.asked == []


def test_an_index_that_the_head_names_does_not_count(
    request_of: PullRequest, other: Index, index: Index
) -> None:
    request_of.edit_config(index.address, other.address)
    request_of.write(LOCK, "onnxruntime==9.7\narrays==1.0\n")
    done = request_of.judge()
    assert done.exit_code == 2, done.err
    assert "watch.indexes" in done.err
    assert other.asked == []


def test_watching_that_the_head_gives_up_goes_on(request_of: PullRequest) -> None:
    request_of.edit_config(f"files: [{LOCK}]", "files: []")
    request_of.write(LOCK, "onnxruntime>=9\n")
    done = request_of.judge()
    assert done.exit_code == 2, done.err
    assert "not pinned to one version" in done.err
