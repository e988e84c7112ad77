"""The tuning tasks of a model, kept as records: another run with the same model need not compile.

A list is a row of integers, in as many records as it needs; each template says which piece it is.
It decides what to look up in a cache and what reports call it, never what a build computes. A build
compares the model's kernels with its list.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Sequence

import msgspec

from tunegate_cache.format.model_election import LASTS_SECONDS
from tunegate_cache.format.model_standing import shape_of
from tunegate_cache.format.records import (
    Decision,
    DeviceFingerprint,
    Provenance,
    Toolchain,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)

MOST_PIECES = 8
"""A compaction keeps no more records of a workload per device."""
_PIECE = 3_000
"""The integers of a piece: always fewer than a record may have."""
_OF_A_DECISION = 30
_MOST_TASKS = 512
_MOST_EXTENTS = 4_096
_MOST_TEXT = 4_096
"""The bytes of a name: a fused recurrent layer's has a thousand."""
_LARGEST = 2**53 - 1


class ListedTask(msgspec.Struct, frozen=True, kw_only=True):
    """A task without its target. `weight` is how often one inference runs it, `name` the compiler's
    name; `flops` and `bytes_moved` are per call."""

    workload: str
    shape: WorkloadShape
    operator: str
    dtype: str
    name: str
    weight: int
    flops: int
    bytes_moved: int


class TaskList(msgspec.Struct, frozen=True, kw_only=True):
    """The tasks of a model, all for the `target` with this digest; `listed_at` is in seconds since
    1970."""

    key: WorkloadKey
    target: str
    tasks: tuple[ListedTask, ...]
    listed_at: int


def list_records(
    task_list: TaskList, *, device: DeviceFingerprint, toolchain: Toolchain, source: Provenance
) -> tuple[TuningRecord, ...]:
    """Returns the records, none for a list that is too long or has an unreadable text."""
    row = tuple(_row(task_list))
    pieces = [row[start : start + _PIECE] for start in range(0, len(row), _PIECE)]
    if (
        len(pieces) > MOST_PIECES
        or _read_list(task_list.key, row, task_list.listed_at) != task_list
    ):
        return ()
    return tuple(
        TuningRecord(
            key=task_list.key,
            shape=shape_of(task_list.key),
            template=_template(number, len(pieces)),
            decisions=tuple(_decisions(piece)),
            run_nanoseconds=(1,),
            status="ok",
            device=device,
            toolchain=toolchain,
            measured_at=task_list.listed_at,
            source=source,
        )
        for number, piece in enumerate(pieces)
    )


def list_of(
    key: WorkloadKey,
    records: Iterable[TuningRecord],
    *,
    device: DeviceFingerprint,
    toolchain: Toolchain,
    now: int,
) -> TaskList | None:
    """Returns the latest list on this kind of device with this compiler; None if it is too old, in
    the future, incomplete or invalid."""
    here = [
        record
        for record in records
        if record.key == key
        and record.status == "ok"
        and (record.device.name, record.device.units) == (device.name, device.units)
        and record.toolchain == toolchain
        and now - LASTS_SECONDS <= record.measured_at <= now
    ]
    listed_at = max((record.measured_at for record in here), default=0)
    row = _together({r.template: r.decisions for r in here if r.measured_at == listed_at})
    return None if row is None else _read_list(key, row, listed_at)


def _together(pieces: dict[str, tuple[Decision, ...]]) -> tuple[int, ...] | None:
    templates = [_template(number, len(pieces)) for number in range(len(pieces))]
    if not pieces or set(templates) != pieces.keys():
        return None
    decided = (values for template in templates for _, values in pieces[template])
    return tuple(value - 1 for values in decided for value in values)


def _decisions(piece: Sequence[int]) -> Iterator[Decision]:
    """Yields the piece's integers, each increased by one: a decision with several integers must not
    contain 0."""
    for start in range(0, len(piece), _OF_A_DECISION):
        yield start, tuple(number + 1 for number in piece[start : start + _OF_A_DECISION])


def _row(task_list: TaskList) -> Iterator[int]:
    yield from digest_row(task_list.target)
    yield len(task_list.tasks)
    for task in task_list.tasks:
        yield from digest_row(task.workload)
        yield from digest_row(task.shape.skeleton)
        yield len(task.shape.extents)
        yield from task.shape.extents
        for text in (task.operator, task.dtype, task.name):
            yield from text_row(text)
        yield from (task.weight, task.flops, task.bytes_moved)


def _read_list(key: WorkloadKey, row: Sequence[int], listed_at: int) -> TaskList | None:
    reader = RowReader(row)
    try:
        target, count = reader.digest(), reader.number(0, _MOST_TASKS)
        tasks = tuple(_task(reader) for _ in range(count))
        reader.end()
    except RefusedRowError:
        return None
    is_once = len({task.workload for task in tasks}) == len(tasks)
    task_list = TaskList(key=key, target=target, tasks=tasks, listed_at=listed_at)
    return task_list if is_once else None


def _task(reader: RowReader) -> ListedTask:
    return ListedTask(
        workload=reader.digest(),
        shape=WorkloadShape(reader.digest(), reader.numbers(1, _LARGEST, _MOST_EXTENTS)),
        operator=reader.text(_MOST_TEXT),
        dtype=reader.text(_MOST_TEXT),
        name=reader.text(_MOST_TEXT),
        weight=reader.number(1, _LARGEST),
        flops=reader.number(0, _LARGEST),
        bytes_moved=reader.number(0, _LARGEST),
    )


def _template(number: int, of: int) -> str:
    text = f"tunegate: a list of tasks, piece {number + 1} of {of}"
    return hashlib.sha256(text.encode()).hexdigest()


# Encodes digests, texts and numbers as a row of integers, and reads such rows without trusting
# them.

_DIGITS = (13, 13, 13, 13, 12)
"""The hexadecimal digits of a SHA-256 in each of its integers."""
_LETTERS = 6
"""The bytes of a text in each of its integers."""


class RefusedRowError(ValueError):
    """A row with invalid content."""


def digest_row(digest: str) -> Iterator[int]:
    """Yields the integers of a digest of 64 hexadecimal digits."""
    start = 0
    for digits in _DIGITS:
        yield int(digest[start : start + digits], 16)
        start += digits


def text_row(text: str) -> Iterator[int]:
    """Yields the number of bytes, and then the bytes."""
    content = text.encode()
    yield len(content)
    for start in range(0, len(content), _LETTERS):
        yield int.from_bytes(content[start : start + _LETTERS], "big")


class RowReader:
    """Reads a row from left to right. Every method raises RefusedRowError for missing or invalid
    content."""

    def __init__(self, row: Sequence[int]) -> None:
        self._row, self._at = row, 0

    def number(self, least: int, most: int) -> int:
        if self._at >= len(self._row) or not least <= self._row[self._at] <= most:
            message = "a number is missing, or out of range"
            raise RefusedRowError(message)
        self._at += 1
        return self._row[self._at - 1]

    def numbers(self, least: int, most: int, most_of_them: int) -> tuple[int, ...]:
        """Returns the numbers that follow their count."""
        return tuple(self.number(least, most) for _ in range(self.number(0, most_of_them)))

    def digest(self) -> str:
        return "".join(f"{self.number(0, 16**digits - 1):0{digits}x}" for digits in _DIGITS)

    def text(self, most_bytes: int) -> str:
        """Returns a printable or empty text."""
        size = self.number(0, most_bytes)
        sizes = [min(_LETTERS, size - start) for start in range(0, size, _LETTERS)]
        content = b"".join(self.number(0, 256**n - 1).to_bytes(n, "big") for n in sizes)
        try:
            text = content.decode()
        except UnicodeDecodeError as error:
            raise RefusedRowError(str(error)) from error
        if not text.isprintable():
            message = "a text is not printable"
            raise RefusedRowError(message)
        return text

    def end(self) -> None:
        if self._at != len(self._row):
            message = "something is left over"
            raise RefusedRowError(message)
