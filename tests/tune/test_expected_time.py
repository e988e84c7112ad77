"""What is expected of a task before it is measured."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.tuning_tasks import exact, make_planned, make_task, transfer
from tunegate.artifacts.tasks import ResolvedTask, TaskUse
from tunegate.tune.expected_time import (
    TargetKind,
    assumed_headroom,
    known_ms,
    operator_class,
    prior_ms,
    seconds_per_trial,
    starting_state,
    weight_of,
)
from tunegate_cache.format.records import ExactHit, Lookup, Miss

KINDS = st.sampled_from(["llvm", "cuda"])
MISS = Miss("absent")


def room_of(operator: str, lookup: Lookup = MISS, flops: float = 1e9) -> float:
    return assumed_headroom(ResolvedTask(make_task(operator=operator, flops=flops), lookup), "llvm")


@pytest.mark.parametrize(
    ("operator", "kind"),
    [
        ("conv2d_add_relu", "contraction"),
        ("depthwise_conv2d", "contraction"),
        ("NT_matmul", "contraction"),
        ("max_pool2d", "reduction"),
        ("softmax", "reduction"),
        ("layer_norm", "reduction"),
        ("maximum", "elementwise"),
        ("add_relu", "elementwise"),
        ("transpose", "elementwise"),
    ],
)
def test_operators_fall_into_classes(operator: str, kind: str) -> None:
    assert operator_class(operator) == kind


def test_an_untuned_convolution_has_ten_times_room_and_an_addition_less_than_twice() -> None:
    assert 10 < 1 / (1 - room_of("conv2d")) < 50
    assert 1 < 1 / (1 - room_of("add")) < 2


def test_a_neighbours_schedule_leaves_some_room_and_an_exact_one_none() -> None:
    assert room_of("conv2d", exact()) == 0
    assert 0 < room_of("conv2d", transfer()) < room_of("conv2d")
    assert room_of("conv2d", transfer(0.5)) < room_of("conv2d", transfer(6.0))


def test_traffic_bounds_what_tuning_can_save() -> None:
    copying = make_task(operator="transpose", flops=0, bytes_moved=4e9)
    assert prior_ms(copying) == pytest.approx(1000, rel=0.01)
    assert assumed_headroom(ResolvedTask(copying, MISS), "llvm") == pytest.approx(0.05)


def test_half_as_wide_values_take_half_the_time() -> None:
    wide, narrow = make_task(dtype="float32"), make_task(dtype="float16")
    assert prior_ms(wide) == pytest.approx(2 * prior_ms(narrow), rel=0.01)


@given(st.floats(0, 1e13), st.floats(0, 1e11), KINDS)
def test_more_work_never_takes_less_time(
    flops: float, bytes_moved: float, kind: TargetKind
) -> None:
    less = make_task(flops=flops, bytes_moved=bytes_moved)
    more = make_task(flops=flops * 2, bytes_moved=bytes_moved * 2)
    assert 0 < prior_ms(less, kind) <= prior_ms(more, kind)
    assert 0 < seconds_per_trial(less, kind) <= seconds_per_trial(more, kind) <= 2


@given(st.floats(0, 1e13), st.sampled_from(["conv2d", "add", "softmax"]), KINDS)
def test_room_is_a_share(flops: float, operator: str, kind: TargetKind) -> None:
    resolved = ResolvedTask(make_task(operator=operator, flops=flops), MISS)
    assert 0 < assumed_headroom(resolved, kind) < 1


def test_a_measured_time_is_believed_over_a_guess() -> None:
    task = make_task()
    assert known_ms(ResolvedTask(task, exact(milliseconds=3.5)), "llvm") == 3.5
    assert known_ms(ResolvedTask(task, ExactHit(())), "llvm") == prior_ms(task)


def test_a_task_counts_once_for_base_and_head_and_again_for_each_model() -> None:
    uses = [("a", "base", 3), ("a", "head", 2), ("b", "head", 1), ("b", "head", 1)]
    task = make_task()
    shared = type(task)(
        key=task.key,
        shape=task.shape,
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=tuple(
            TaskUse(model=model, side=side, weight=weight, name="n")  # type: ignore[arg-type]  # rows
            for model, side, weight in uses
        ),
    )
    assert weight_of(shared) == 5


def test_a_search_starts_from_the_expected_time_and_leaves_exact_hits_alone() -> None:
    task = make_task(weight=4)
    begun = starting_state(make_planned(task), "llvm")
    assert (begun.weight, begun.prior_ms, begun.best_ms) == (4, prior_ms(task), None)
    assert starting_state(make_planned(task, exact()), "llvm").headroom == 0


def test_a_transferred_schedule_is_worth_a_first_batch_like_an_untuned_task() -> None:
    task = make_task()
    with_sources = starting_state(make_planned(task, transfer()), "llvm")
    assert with_sources.headroom == starting_state(make_planned(task), "llvm").headroom
