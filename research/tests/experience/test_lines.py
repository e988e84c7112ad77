"""Lines that others wrote are refused where a model could not be fitted to them."""

from __future__ import annotations

import json
import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.tune.test_gpu_analysis import KERNEL
from tests.tune.test_prior import SKETCH, decided, experience, gpu_experience

from research.experience.lines import (
    MOST_ROWS,
    distinct,
    fault_of_task,
    lines_of,
    read_experience,
)
from tunegate.tune.gpu_analysis import Card, GpuKernel, Operand
from tunegate.tune.loop_nest import DecisionValues, LoopNest
from tunegate.tune.prior import Sketch, TaskExperience, VectorRegisters, experience_of, nest_columns

CARD, GPU_LINE = KERNEL.card, gpu_experience()
LINE = msgspec.structs.replace(experience(), workload="w", device="cpu", threads=1)


def changed(**values: object) -> TaskExperience:
    return msgspec.structs.replace(LINE, **values)


def row(values: DecisionValues, ms: float = 1.0, which: int = 0) -> TaskExperience:
    return changed(rows=((which, ms, values),))


def sketched(**values: object) -> TaskExperience:
    assert SKETCH.nest is not None
    nest = msgspec.structs.replace(SKETCH.nest, **values)
    return changed(sketches=(Sketch("direct", nest),))


def kernel_of(operand: Operand, card: Card = CARD) -> TaskExperience:
    """A product on a GPU whose first operand is this one."""
    kernel = GpuKernel((operand, KERNEL.operands[1]), card, KERNEL.shared_bytes)
    (sketch,) = GPU_LINE.sketches
    return msgspec.structs.replace(
        GPU_LINE, sketches=(msgspec.structs.replace(sketch, kernel=kernel),)
    )


def test_what_a_gpu_measured_comes_back_with_card_and_kernel() -> None:
    assert read_experience(lines_of([GPU_LINE]).splitlines()) == ((GPU_LINE,), 0)


def test_the_data_that_ship_hold_together() -> None:
    assert {fault_of_task(task) for task in experience_of("llvm")} == {""}


@pytest.mark.parametrize(
    "hostile",
    [
        changed(name="x" * 1000),
        changed(models=("x" * 1000,)),
        changed(rows=()),
        changed(rows=LINE.rows[:1] * (MOST_ROWS + 1)),
        changed(sketches=()),
        changed(threads=-1),
        row(decided(16), ms=math.nan),
        row(decided(16), ms=math.inf),
        row(decided(16), ms=0.0),
        row(decided(16), ms=-1.0),
        row(decided(16), which=1),
        row(decided(16), which=-1),
        row(()),
        row(decided(16)[:3]),
        row((*decided(16)[:3], (9,))),
        row((*decided(16)[:3], (-1,))),
        row((*decided(16), (-9,))),
        row(((0, 1, 8, 4), *decided(16)[1:])),
        row(((1, 8, 4), *decided(16)[1:])),
        row(((2**40, 1, 8, 4), *decided(16)[1:])),
        sketched(order=()),
        sketched(order=((0, 5),)),
        sketched(order=((-1, 0),)),
        sketched(unrolls=()),
        sketched(unrolled_by=7),
        sketched(copied_at=-3),
        changed(sketches=(Sketch("direct", SKETCH.nest, lanes=0),)),
        changed(sketches=(Sketch("direct", SKETCH.nest, registers=VectorRegisters(0, 32)),)),
        changed(sketches=(Sketch("direct", SKETCH.nest, registers=VectorRegisters(16, 2**20)),)),
        kernel_of(Operand(4, (((9, 1),),))),
        kernel_of(Operand(4, ())),
        kernel_of(Operand(0, (((0, 1),),)), card=msgspec.structs.replace(CARD, processors=0)),
    ],
)
def test_what_no_model_can_be_fitted_to_is_refused(hostile: TaskExperience) -> None:
    assert fault_of_task(hostile)
    assert read_experience([msgspec.json.encode(hostile)]) == ((), 1)


@pytest.mark.parametrize(
    "line",
    [
        b"",
        b"null",
        b"\xff\xfe",
        b"[" * 200_000,
        b'{"name":"n","sketches":[],"rows":[[0,NaN,[]]]}',
        b'{"name":"n","sketches":[],"rows":[[0,1e999,[]]]}',
        json.dumps({"name": "n", "sketches": [], "rows": "x"}).encode(),
    ],
)
def test_a_bad_line_is_skipped_and_counted(line: bytes) -> None:
    found = read_experience([line, msgspec.json.encode(LINE)])
    assert found == ((LINE,), 1)


small = st.integers(-1, 3)


@given(
    order=st.lists(st.tuples(small, small), max_size=6),
    copied_at=st.none() | small,
    unrolled_by=st.none() | small,
    unrolls=st.lists(small, max_size=2),
    lanes=small,
    values=st.lists(st.lists(small, max_size=3), max_size=4),
    which=small,
    ms=st.floats(),
)
def test_whatever_passes_has_all_its_columns(
    order: list[tuple[int, int]],
    copied_at: int | None,
    unrolled_by: int | None,
    unrolls: list[int],
    lanes: int,
    values: list[list[int]],
    which: int,
    ms: float,
) -> None:
    nest = LoopNest(tuple(order), copied_at, unrolled_by, tuple(unrolls))
    drawn: DecisionValues = tuple(map(tuple, values))
    task = TaskExperience("", (Sketch("direct", nest, lanes),), ((which, ms, drawn),))
    if not fault_of_task(task):
        assert all(map(math.isfinite, nest_columns(task.sketches[which], drawn)))


def test_a_task_of_a_device_counts_once_and_has_the_models_of_all() -> None:
    short = changed(rows=LINE.rows[:3], models=("b",))
    assert distinct([short, changed(models=("a",))]) == (changed(models=("a", "b")),)


def test_other_devices_and_lines_without_a_workload_are_other_tasks() -> None:
    older = changed(workload="")
    narrow = tuple(
        msgspec.structs.replace(each, registers=VectorRegisters(8, 16)) for each in LINE.sketches
    )
    of_its_name = changed(sketches=narrow)
    lines = (LINE, changed(device="other"), changed(threads=2), of_its_name, older, older)
    assert distinct(lines) == lines


def test_what_is_written_as_lines_is_read_again() -> None:
    other = changed(workload="v")
    assert read_experience(lines_of([LINE, other]).splitlines()) == ((LINE, other), 0)
