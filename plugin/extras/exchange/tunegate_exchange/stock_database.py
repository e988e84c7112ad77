"""Reads a stock MetaSchedule database as data that anybody may have written.

TVM's own loader would build its modules and traces. Here records are JSON lines with limits, and
the file of workloads (serialized modules) is not opened at all.
"""

import heapq
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from typing import Annotated, Any, cast

import msgspec

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.artifacts.tasks import Instruction
from tunegate.errors import ConfigError
from tunegate_exchange.requests import ForeignSchedule

RECORDS = "database_tuning_record.json"
_MAX_LINE = 4 * 1024 * 1024
_MAX_LINES = 1_000_000
_MAX_INSTRUCTIONS = 2_000
_MAX_DECISIONS = 256
_MAX_RUN_SECONDS = 3600.0
_BEST_OF_EACH = 16
"""The number of records kept per workload: more could not be tried anyway."""

# Nothing here nests deeper than TVM writes it.
_Integer = Annotated[int, msgspec.Meta(ge=-(2**31), le=2**31 - 1)]
_Leaf = str | int | float | bool | None
_Value = _Leaf | list[_Leaf] | dict[str, _Leaf]
_Instruction = tuple[str, list[_Value], list[_Value], list[str]]
_Decision = tuple[_Integer, _Integer | list[_Integer]]
_Line = tuple[
    _Integer,
    tuple[
        tuple[list[_Instruction], list[_Decision]],
        list[float] | None,
        str | dict[str, Any],
        list[tuple[str, str, list[_Integer]]],
    ],
]


class StockDatabase(msgspec.Struct, frozen=True, kw_only=True):
    """`schedules` are the fastest of each workload, by the file's claims. `read` counts lines,
    `refused` those without a schedule, by reason."""

    schedules: tuple[ForeignSchedule, ...]
    read: int
    refused: dict[str, int]


def read_database(directory: Path) -> StockDatabase:
    """Reads the database. Raises ConfigError if there is none."""
    file = directory / RECORDS
    if not file.is_file():
        message = f"{directory}: holds no MetaSchedule database (no {RECORDS}). Name its directory."
        raise ConfigError(message)
    refused: Counter[str] = Counter()
    best: dict[int, list[tuple[float, int, ForeignSchedule]]] = {}
    number = 0
    for number, line in enumerate(_lines(file), start=1):
        found = _schedule(line)
        if isinstance(found, str):
            refused[found] += 1
            continue
        workload, schedule = found
        ranked = best.setdefault(workload, [])
        entry = (-schedule.median_ms, number, schedule)
        if len(ranked) < _BEST_OF_EACH:
            heapq.heappush(ranked, entry)
        else:
            heapq.heappushpop(ranked, entry)
    schedules = [s for ranked in best.values() for _, _, s in sorted(ranked, reverse=True)]
    return StockDatabase(schedules=tuple(schedules), read=number, refused=dict(refused))


def _lines(file: Path) -> Iterator[bytes]:
    """Yields the lines of a file. A line that is too long is cut, which leaves no valid JSON."""
    with file.open("rb") as stream:
        for _ in range(_MAX_LINES):
            line = stream.readline(_MAX_LINE)
            if not line:
                return
            while not line.endswith(b"\n") and (rest := stream.readline(_MAX_LINE)):
                if rest.endswith(b"\n"):
                    break
            yield line


def _schedule(line: bytes) -> tuple[int, ForeignSchedule] | str:
    try:
        parsed = msgspec.json.decode(line, type=_Line)
    except NOT_JSON:
        return "not a tuning record"
    workload, ((instructions, decisions), seconds, target, arguments) = parsed
    if not seconds or not all(0 < t < _MAX_RUN_SECONDS for t in seconds):
        return "no time was measured"
    if len(instructions) > _MAX_INSTRUCTIONS or len(decisions) > _MAX_DECISIONS:
        return "too long for a schedule"
    kind = _kind(target)
    if kind is None:
        return "another target"
    schedule = ForeignSchedule(
        kind=kind,
        arguments=tuple((dtype, tuple(shape)) for _, dtype, shape in arguments),
        instructions=tuple(cast("list[Instruction]", instructions)),
        decisions=tuple((i, (v,) if isinstance(v, int) else tuple(v)) for i, v in decisions),
        run_nanoseconds=tuple(round(t * 1e9) for t in seconds),
    )
    return workload, schedule


def _kind(target: str | dict[str, Any]) -> Any:
    """Returns the kind of a target, which is JSON in JSON, in some versions as text."""
    if isinstance(target, str):
        try:
            target = msgspec.json.decode(target, type=dict[str, Any])
        except NOT_JSON:
            return None
    kind = target.get("kind")
    if isinstance(kind, dict):
        kind = kind.get("name")
    return kind if kind in {"llvm", "cuda"} else None
