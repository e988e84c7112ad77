"""Lines of experience that others wrote: each is checked before a model is fitted to it, and each
layer of a device counts once."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Sequence
from typing import NamedTuple

import msgspec

from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.prior import Sketch, TaskExperience, columns_of

MOST_ROWS = 5_000
_MAX_SKETCHES = 64
_MAX_TEXT = 300
_MAX_MS = 1e6
_MAX_NUMBER = 2**31
_MOST_REGISTERS = 2**10
_LEAST = -2
"""TVM's compute location: -1 is the root, -2 inlined."""


class ReadExperience(NamedTuple):
    """The tasks that can be used, and how many lines were refused."""

    tasks: tuple[TaskExperience, ...]
    refused: int


def read_experience(lines: Iterable[bytes]) -> ReadExperience:
    """Returns the tasks of the lines. A line that is no task, or does not hold together, is
    counted."""
    tasks: list[TaskExperience] = []
    refused = 0
    for line in lines:
        try:
            tasks.append(task_of_line(line))
        except NoTaskError:
            refused += 1
    return ReadExperience(distinct(tasks), refused)


class NoTaskError(ValueError):
    """A line is no task that a model may be fitted to; the text says why."""


_DECODER = msgspec.json.Decoder(TaskExperience)


def task_of_line(line: bytes) -> TaskExperience:
    """Raises NoTaskError."""
    try:
        task = _DECODER.decode(line)
    except (msgspec.DecodeError, RecursionError, UnicodeDecodeError) as error:
        raise NoTaskError(str(error)) from error
    if fault := fault_of_task(task):
        raise NoTaskError(fault)
    return task


def lines_of(tasks: Iterable[TaskExperience]) -> bytes:
    """The same tasks as lines."""
    return msgspec.json.Encoder().encode_lines(list(tasks))


def distinct(tasks: Sequence[TaskExperience]) -> tuple[TaskExperience, ...]:
    """One line for each workload of each device, that with the most rows; it names the models of
    all. Older lines that say no workload all stay."""
    kept: dict[object, TaskExperience] = {}
    for number, task in enumerate(tasks):
        # CPUs of one name may have others.
        registers = frozenset(sketch.registers for sketch in task.sketches)
        place = (task.workload, task.device, task.threads, registers)
        key = place if task.workload else number
        other = kept.get(key)
        if other is None:
            kept[key] = task
            continue
        most = max(other, task, key=lambda each: len(each.rows))
        models = tuple(sorted({*other.models, *task.models}))
        kept[key] = msgspec.structs.replace(most, models=models)
    return tuple(kept.values())


def fault_of_task(task: TaskExperience) -> str:
    """Returns the reason that no model may be fitted to it, '' where one may."""
    texts = (task.name, task.kind, task.layer, task.workload, task.device, *task.models)
    if max(map(len, texts)) > _MAX_TEXT:
        return "a text is too long"
    if not 0 < len(task.rows) <= MOST_ROWS or not 0 < len(task.sketches) <= _MAX_SKETCHES:
        return "no rows or sketches, or too many"
    if not 0 <= task.threads < _MAX_NUMBER:
        return "no number of threads"
    found = (_problem_of_sketch(sketch) for sketch in task.sketches)
    rows = (_problem_of_row(task.sketches, *row) for row in task.rows)
    fault = next(filter(None, (*found, *rows)), "")
    return fault or ("" if _has_columns(task) else "a kernel that its tiles cannot be of")


def _problem_of_sketch(sketch: Sketch) -> str:
    nest = sketch.nest
    if not 0 < sketch.lanes < _MAX_NUMBER:
        return "no number of lanes"
    if not all(
        0 < number <= _MOST_REGISTERS for number in msgspec.structs.astuple(sketch.registers)
    ):
        return "no vector registers"
    if nest is None:
        return ""
    if not nest.order or not _are_numbers(nest.unrolls, 0):
        return "no loops, or no steps to unroll"
    if nest.copied_at is not None and not 0 <= nest.copied_at < _MAX_NUMBER:
        return "no level of a copy"
    depths = Counter(place for place, _ in nest.order)
    wanted = {(place, level) for place, depth in depths.items() for level in range(depth)}
    return "" if wanted == set(nest.order) else "levels of a tile are missing"


def _has_columns(task: TaskExperience) -> bool:
    """Returns True where the analysis of a GPU can make its columns of the task: it counts with
    what the line says of card and kernel."""
    try:
        columns = columns_of(task) if task.is_of_gpu else []
        return not any(math.isinf(column) for row in columns for column in row)
    except (ArithmeticError, LookupError, ValueError):
        return False


def _problem_of_row(
    sketches: Sequence[Sketch], which: int, milliseconds: float, decided: DecisionValues
) -> str:
    if not 0 <= which < len(sketches):
        return "a row of no sketch"
    if not (math.isfinite(milliseconds) and 0 < milliseconds <= _MAX_MS):
        return "a time that is none"
    if not all(_are_numbers(values, _LEAST) for values in decided):
        return "a decision that is no number"
    nest = sketches[which].nest
    return "" if nest is None or _fits(nest, decided) else "decisions that its sketch cannot have"


def _fits(nest: LoopNest, decided: DecisionValues) -> bool:
    places = range(len(decided))
    depths = Counter(place for place, _ in nest.order)
    is_tiled = all(
        place in places and len(decided[place]) == depth and _are_numbers(decided[place], 1)
        for place, depth in depths.items()
    )
    if nest.unrolled_by is None:
        return is_tiled
    if nest.unrolled_by not in places or len(decided[nest.unrolled_by]) != 1:
        return False
    return is_tiled and 0 <= decided[nest.unrolled_by][0] < len(nest.unrolls)


def _are_numbers(values: Sequence[int], least: int) -> bool:
    return all(least <= value < _MAX_NUMBER for value in values)
