import json
from pathlib import Path
from typing import Any

import pytest

from tunegate.errors import ConfigError
from tunegate_exchange.requests import ForeignSchedule
from tunegate_exchange.stock_database import RECORDS, StockDatabase, read_database

TARGET = {"keys": ["cpu"], "kind": "llvm", "num-cores": 2}
ARGUMENTS = [["TENSOR", "float32", [1, 16]], ["TENSOR", "float32", [16, 8]]]
INSTRUCTIONS = [["GetSBlock", [], ["T_matmul", "main"], ["b0"]]]


def line(**changed: object) -> list[Any]:
    given: dict[str, Any] = {
        "workload": 0,
        "instructions": INSTRUCTIONS,
        "decisions": [[3, [4, 4]], [5, 2]],
        "seconds": [2e-6, 1e-6, 3e-6],
        "target": TARGET,
        "arguments": ARGUMENTS,
    } | changed
    trace = [given["instructions"], given["decisions"]]
    return [given["workload"], [trace, given["seconds"], given["target"], given["arguments"]]]


def database(directory: Path, *lines: object) -> StockDatabase:
    text = "\n".join(x if isinstance(x, str) else json.dumps(x) for x in lines)
    (directory / RECORDS).write_text(text)
    return read_database(directory)


def test_a_record_is_read_as_plain_data(tmp_path: Path) -> None:
    found = database(tmp_path, line())
    (schedule,) = found.schedules
    assert (found.read, found.refused) == (1, {})
    assert schedule.kind == "llvm"
    assert schedule.arguments == (("float32", (1, 16)), ("float32", (16, 8)))
    assert schedule.decisions == ((3, (4, 4)), (5, (2,)))
    assert schedule.run_nanoseconds == (2000, 1000, 3000)
    assert schedule.median_ms == 0.002


def test_a_target_may_be_text(tmp_path: Path) -> None:
    (schedule,) = database(tmp_path, line(target=json.dumps({"kind": "cuda"}))).schedules
    assert schedule.kind == "cuda"


def test_only_the_fastest_of_a_workload_are_kept(tmp_path: Path) -> None:
    lines = [line(seconds=[(1 + i) * 1e-6]) for i in range(40)]
    others = [line(workload=1, seconds=[1.0])]
    found = database(tmp_path, *lines[::-1], *others)
    assert [s.median_ms for s in found.schedules[:16]] == [(1 + i) / 1000 for i in range(16)]
    assert len(found.schedules) == 17


MALFORMED = {
    "no JSON": ("not json", "not a tuning record"),
    "deep": ("[" * 200_000, "not a tuning record"),
    "an object": ({"a": 1}, "not a tuning record"),
    "decisions that are no integers": (line(decisions=[[3, [1.5]]]), "not a tuning record"),
    "a huge integer": (line(decisions=[[3, [10**30]]]), "not a tuning record"),
    "instructions of other parts": (line(instructions=[["X"]]), "not a tuning record"),
    "an instruction that is a number": (line(instructions=[1]), "not a tuning record"),
    "never run": (line(seconds=None), "no time was measured"),
    "negative": (line(seconds=[-1.0]), "no time was measured"),
    "zero": (line(seconds=[0.0]), "no time was measured"),
    "infinite": ('[0,[[[],[]],[1e999],{"kind":"llvm"},[]]]', "not a tuning record"),
    "TVM's mark of a failure": (line(seconds=[1e10]), "no time was measured"),
    "too many instructions": (line(instructions=INSTRUCTIONS * 3000), "too long for a schedule"),
    "too many decisions": (line(decisions=[[3, 1]] * 300), "too long for a schedule"),
    "another target": (line(target={"kind": "vulkan"}), "another target"),
    "a target that is no JSON": (line(target="llvm -mcpu=haswell"), "another target"),
}


@pytest.mark.parametrize("name", MALFORMED)
def test_a_line_that_is_no_schedule_costs_itself_only(tmp_path: Path, name: str) -> None:
    bad, reason = MALFORMED[name]
    found = database(tmp_path, bad, line())
    assert found.refused == {reason: 1}
    assert len(found.schedules) == 1


def test_a_line_without_end_is_not_held_in_memory(tmp_path: Path) -> None:
    (tmp_path / RECORDS).write_text("[" + "1," * 6_000_000 + "\n" + json.dumps(line()))
    found = read_database(tmp_path)
    assert (found.read, len(found.schedules)) == (2, 1)


def test_a_directory_without_a_database_is_an_error(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="holds no MetaSchedule database"):
        read_database(tmp_path)


def test_a_schedule_claims_the_median_of_its_times() -> None:
    schedule = ForeignSchedule(
        kind="llvm",
        arguments=(),
        instructions=(),
        decisions=(),
        run_nanoseconds=(3_000_000, 1_000_000, 9_000_000),
    )
    assert schedule.median_ms == 3.0
