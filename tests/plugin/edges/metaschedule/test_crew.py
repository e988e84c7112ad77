from __future__ import annotations

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from tunegate.edges.metaschedule.crew import Crew
from tunegate.edges.metaschedule.messages import Candidate, Measure, Measured, Schedule
from tunegate.edges.metaschedule.places import on_cpu
from tunegate.edges.run_child import MEMORY_VARIABLE


@pytest.fixture
def crew(tmp_path: Path) -> Iterator[Crew]:
    made = Crew(
        on_cpu(2, tmp_path, 3.0),
        variables={},
        log=tmp_path / "log",
        module="tests.support.odd_worker",
    )
    yield made
    made.close()


def request(number: int, behaviour: str) -> Measure:
    candidate = Candidate(
        number=number,
        workload="w",
        origin="search",
        schedule=Schedule("t", ()),
        module=behaviour,
        arguments=(),
    )
    return Measure(
        candidate=candidate,
        target_json="{}",
        reference="",
        writes_reference=False,
        loser_ms=1.0,
        repeats=1,
    )


def finish(crew: Crew) -> dict[int, Measured]:
    results = {}
    deadline = time.monotonic() + 30
    while crew.pending and time.monotonic() < deadline:
        crew.dispatch()
        time.sleep(0.02)
        results.update({m.candidate.number: measured for m, measured in crew.collect()})
    return results


def test_a_crash_and_a_hang_cost_one_candidate_each_and_the_rest_is_measured(crew: Crew) -> None:
    crew.add([request(1, "crash"), request(2, "hang"), *(request(n, "") for n in range(3, 9))])
    results = finish(crew)
    assert results[1].status == "runtime"
    assert "SIGABRT" in results[1].detail
    assert results[2].status == "timeout"
    assert [results[n].status for n in range(3, 9)] == ["ok"] * 6


def test_a_worker_that_exits_says_its_code(crew: Crew) -> None:
    crew.add([request(1, "exit")])
    assert "exited with 1" in finish(crew)[1].detail


def test_closing_frees_the_machine_while_work_is_in_flight(crew: Crew) -> None:
    crew.add([request(1, "hang"), request(2, "hang")])
    crew.dispatch()
    pids = [child.pid for child in crew.children]
    crew.close()
    assert all(not Path(f"/proc/{pid}").exists() for pid in pids)


def test_a_candidate_that_asks_for_too_much_memory_costs_itself(tmp_path: Path) -> None:
    crew = Crew(
        on_cpu(1, tmp_path, 10.0),
        variables={MEMORY_VARIABLE: str(2**31)},
        log=tmp_path / "log",
        module="tests.support.odd_worker",
    )
    try:
        crew.add([request(1, "hoard"), request(2, "")])
        results = finish(crew)
    finally:
        crew.close()
    assert (results[1].status, results[2].status) == ("runtime", "ok")
    assert "MemoryError" in (tmp_path / "log").read_text()


def test_a_crew_of_one_each_keeps_the_idle_worker_of_a_device(crew: Crew) -> None:
    crew.add([request(1, "hang"), request(2, "")])
    deadline = time.monotonic() + 30
    while not crew.collect() and time.monotonic() < deadline:
        crew.dispatch()
        time.sleep(0.02)
    idle = next(child for child in crew.children if child.busy_since is None)
    crew.keep_one_each()
    assert crew.children == (idle,)
    assert crew.pending == 0
    crew.add([request(3, "")])
    assert finish(crew)[3].status == "ok"


def test_a_worker_that_has_grown_is_replaced(crew: Crew, monkeypatch: pytest.MonkeyPatch) -> None:
    before = {child.pid for child in crew.children}
    crew.add([request(n, "") for n in range(16)])
    finish(crew)
    assert {child.pid for child in crew.children} == before
    monkeypatch.setattr("tunegate.edges.metaschedule.crew._MOST_BYTES", 1)
    crew.add([request(n, "") for n in range(16, 48)])
    finish(crew)
    assert before - {child.pid for child in crew.children}
