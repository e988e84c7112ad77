"""The search goes on after a kill, whenever it comes; what never starts ends the run."""

from __future__ import annotations

import os
import signal
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tests.tune.test_searchers import TARGET, two_models
from tunegate.errors import EnvironmentUnfitError
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.tune.protocol import ModelFile, OpenModels, Propose, Proposed
from tunegate.tune.searchers import SearchChild

PLENTY = MemoryLimit(8 * 2**30)


def kill(child: SearchChild) -> None:
    os.kill(child.pid, signal.SIGKILL)


def received(child: SearchChild, until: Callable[[], bool]) -> list[Proposed]:
    found: list[Proposed] = []
    deadline = time.monotonic() + 90
    while time.monotonic() < deadline:
        found += child.receive()
        if until() or found:
            return found
        time.sleep(0.02)
    raise AssertionError("nothing came")


def test_a_kill_while_opening_idle_or_asked_is_survived_and_the_fourth_is_one_too_many(
    tmp_path: Path,
) -> None:
    models, (workload, _) = two_models(tmp_path)
    request = OpenModels(models=models, target=TARGET, directory=str(tmp_path), seed=1)
    with closing(SearchChild(request, tmp_path / "log", PROGRAMS.searcher, PLENTY)) as child:
        kill(child)
        first = child.pid
        received(child, lambda: child.is_idle)
        assert child.pid != first
        kill(child)
        time.sleep(0.1)
        child.propose(Propose(workload=workload, count=1))
        assert child.knows(workload)
        assert (child.asked_for(workload), child.asked_for("another")) == (1, 0)
        (nothing,) = received(child, lambda: False)  # to be asked again
        assert (nothing.exhausted, nothing.candidates) == (False, ())
        assert not child.knows(workload)
        assert child.asked_for(workload) == 0
        received(child, lambda: child.is_idle)
        child.propose(Propose(workload=workload, count=1))
        (proposed,) = received(child, lambda: False)
        assert [c.number for c in proposed.candidates] == [2_000_001, 2_000_002]
        child.propose(Propose(workload=workload, count=1))
        kill(child)
        (given_up,) = received(child, lambda: False)  # the second one that died of this task
        assert given_up.exhausted
        received(child, lambda: child.is_idle)
        kill(child)
        with pytest.raises(EnvironmentUnfitError, match="killed by SIGKILL"):
            received(child, lambda: False)


def test_what_never_starts_is_not_started_again(tmp_path: Path) -> None:
    model = save(conv_model(), tmp_path / "m.onnx")
    request = OpenModels(
        models=(ModelFile(file=str(model), path="m.onnx", shapes={}),),
        target=TARGET,
        directory=str(tmp_path),
        seed=1,
    )
    with (
        closing(SearchChild(request, tmp_path / "log", "no.such.module", PLENTY)) as child,
        pytest.raises(EnvironmentUnfitError, match=r"exited with 1 .*No module named 'no'"),
    ):
        received(child, lambda: False)


def test_opening_may_take_longer_than_an_answer(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tunegate.tune.searchers._LIMIT_SECONDS", 0.1)
    models, _ = two_models(tmp_path)
    request = OpenModels(models=models, target=TARGET, directory=str(tmp_path), seed=1)
    with closing(SearchChild(request, tmp_path / "log", PROGRAMS.searcher, PLENTY)) as child:
        first = child.pid
        os.kill(first, signal.SIGSTOP)
        time.sleep(0.2)
        assert child.receive() == []
        os.kill(first, signal.SIGCONT)
        received(child, lambda: child.is_idle)
        assert child.pid == first
