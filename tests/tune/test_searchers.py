"""Several children search, each for tasks of its own."""

import os
import selectors
import signal
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import closing
from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import EnvironmentUnfitError
from tunegate.models.preparation import prepare
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.system.processes.memory_limit import MemoryLimit
from tunegate.tune import searchers
from tunegate.tune.prior import Sketch
from tunegate.tune.protocol import ModelFile, OpenModels, Propose, Proposed
from tunegate.tune.searchers import SearchChild, Searchers, SearchProgram, searchers_for

TARGET = TargetConfig(name="cpu", threads=1, layout="nchw")


@pytest.mark.parametrize(
    ("workers", "cores", "children"),
    [(1, 2, 1), (2, 2, 1), (24, 16, 1), (25, 16, 2), (64, 16, 3), (64, 2, 2), (64, 1, 1)],
)
def test_one_child_searches_for_two_dozen_workers(workers: int, cores: int, children: int) -> None:
    assert searchers_for(workers, cores, "llvm", 99) == children


def two_models(directory: Path) -> tuple[tuple[ModelFile, ...], list[str]]:
    """Files, and what the search calls the convolution of each."""
    files, workloads = [], []
    for channels in (4, 8):
        path = f"{channels}.onnx"
        model = save(conv_model(channels=channels, out=4, size=8), directory / path)
        files.append(ModelFile(file=str(model), path=path, shapes={}))
        prepared = prepare(model, shapes={}, into=directory / "prepared", path=path)
        module = import_in_layout(prepared, tvm_target(TARGET).target, path, ("nchw",))
        conv = next(each for each in functions_of(module) if "conv" in each.operator)
        workloads.append(conv.workload.digest)
    return tuple(files), workloads


def opening(models: tuple[ModelFile, ...], directory: Path) -> OpenModels:
    return OpenModels(models=models, target=TARGET, directory=str(directory), seed=1)


def received(found: Searchers, wanted: int) -> Iterator[Proposed]:
    deadline = time.monotonic() + 90
    while wanted and time.monotonic() < deadline:
        with selectors.DefaultSelector() as selector:
            for child in found.children:
                selector.register(child, selectors.EVENT_READ)
            selector.select(timeout=1.0)
        for proposed in found.receive():
            wanted -= 1
            yield proposed


def wait(found: Searchers, until: Callable[[], bool]) -> None:
    while not until():
        assert found.receive() == []
        time.sleep(0.05)


def test_two_children_search_two_tasks_at_the_same_time(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setitem(searchers._WORKERS_OF_ONE, "llvm", 1)
    monkeypatch.setattr(searchers, "usable_cores", lambda: 2)
    models, workloads = two_models(tmp_path)
    described: dict[str, Mapping[str, Sketch]] = {}
    program = SearchProgram(PROGRAMS.searcher, described.__setitem__)
    with closing(Searchers(opening(models, tmp_path), workloads, 2, tmp_path, program)) as found:
        assert len(found.children) == 2
        first, second = workloads
        assert not found.is_idle(first)  # it opens the models
        wait(found, lambda: found.are_idle)
        assert found.target_json
        # Each has prepared the models for itself: none reads what another has half written.
        prepared = sorted(p.relative_to(tmp_path).parts[0] for p in tmp_path.rglob("model-0"))
        assert prepared == ["searcher-0", "searcher-1"]
        found.propose(Propose(workload=first, count=1))
        assert (found.is_idle(first), found.is_idle(second)) == (False, True)
        found.propose(Propose(workload=second, count=1))
        answers = {each.workload: len(each.candidates) for each in received(found, 2)}
        assert answers == {first: 2, second: 2}  # the default schedule, and one more
        assert found.are_idle
    # What the templates are crosses from the child's process, by template.
    assert set(described) == set(workloads)
    assert any(sketch.nest for each in described.values() for sketch in each.values())


def test_a_child_that_joins_takes_a_task_over_once_it_has_opened_the_models(tmp_path: Path) -> None:
    models, workloads = two_models(tmp_path)
    program = SearchProgram(PROGRAMS.searcher)
    with closing(Searchers(opening(models, tmp_path), workloads, 2, tmp_path, program)) as found:
        wait(found, lambda: found.are_idle)
        found.grow(5)  # there are two tasks
        assert len(found.children) == 2
        assert found.are_idle  # nobody waits for one that is still to join
        wait(found, lambda: all(child.is_idle for child in found.children))
        found.receive()
        first, second = workloads
        found.propose(Propose(workload=first, count=1))
        assert (found.is_idle(first), found.is_idle(second)) == (False, True)
        found.propose(Propose(workload=second, count=1))
        assert {each.workload for each in received(found, 2)} == set(workloads)


# The search goes on after a kill, whenever it comes; what never starts ends the run.

PLENTY = MemoryLimit(8 * 2**30)


def child_of(
    models: tuple[ModelFile, ...], directory: Path, program: str = PROGRAMS.searcher
) -> closing[SearchChild]:
    request = opening(models, directory)
    return closing(SearchChild(request, directory / "log", SearchProgram(program), PLENTY))


def kill(child: SearchChild) -> None:
    os.kill(child.pid, signal.SIGKILL)


def search_child_received(child: SearchChild, until: Callable[[], bool]) -> list[Proposed]:
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
    with child_of(models, tmp_path) as child:
        kill(child)
        first = child.pid
        search_child_received(child, lambda: child.is_idle)
        assert child.pid != first
        kill(child)
        time.sleep(0.1)
        child.propose(Propose(workload=workload, count=1))
        assert child.knows(workload)
        assert (child.requested_count(workload), child.requested_count("another")) == (1, 0)
        (nothing,) = search_child_received(child, lambda: False)  # to be asked again
        assert (nothing.exhausted, nothing.candidates) == (False, ())
        assert not child.knows(workload)
        assert child.requested_count(workload) == 0
        search_child_received(child, lambda: child.is_idle)
        child.propose(Propose(workload=workload, count=1))
        (proposed,) = search_child_received(child, lambda: False)
        assert [c.number for c in proposed.candidates] == [2_000_001, 2_000_002]
        child.propose(Propose(workload=workload, count=1))
        kill(child)
        (given_up,) = search_child_received(child, lambda: False)  # the second that died of it
        assert given_up.exhausted
        search_child_received(child, lambda: child.is_idle)
        kill(child)
        with pytest.raises(EnvironmentUnfitError, match="killed by SIGKILL"):
            search_child_received(child, lambda: False)


def test_what_never_starts_is_not_started_again(tmp_path: Path) -> None:
    model = save(conv_model(), tmp_path / "m.onnx")
    models = (ModelFile(file=str(model), path="m.onnx", shapes={}),)
    with (
        child_of(models, tmp_path, "no.such.module") as child,
        pytest.raises(EnvironmentUnfitError, match=r"exited with 1 .*No module named 'no'"),
    ):
        search_child_received(child, lambda: False)


def test_opening_may_outlast_an_answer(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tunegate.tune.searchers._LIMIT_SECONDS", 0.1)
    models, _ = two_models(tmp_path)
    with child_of(models, tmp_path) as child:
        first = child.pid
        os.kill(first, signal.SIGSTOP)
        time.sleep(0.2)
        assert child.receive() == []
        os.kill(first, signal.SIGCONT)
        search_child_received(child, lambda: child.is_idle)
        assert child.pid == first
