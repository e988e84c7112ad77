"""There are six contexts, and each kernel is chosen by itself."""

from __future__ import annotations

from tunegate_whole_model.stages.contexts import CONTEXTS, Context, by_threads, fastest


def test_the_grid_is_one_to_three_times_the_multiprocessors() -> None:
    assert len(set(CONTEXTS)) == 6
    assert by_threads()[0] == Context(3, 256)
    assert by_threads()[-1] == Context(1, 128)
    assert str(Context(2, 128)) == "2 x 128 threads"


def test_each_kernel_is_done_in_its_fastest_way() -> None:
    offered = {"a": ("recorded", "plain"), "b": ("recorded", "plain"), "c": ("plain",)}
    times = {"a": {"recorded": 2.0, "plain": 1.0}, "b": {"recorded": 1.0, "plain": 1.5}}
    assert fastest(offered, times) == {"a": "plain", "b": "recorded", "c": "plain"}


def test_what_nobody_measured_is_done_in_the_first_way() -> None:
    assert fastest({"a": ("recorded", "plain")}, {}) == {"a": "recorded"}


def test_a_way_that_did_not_run_is_not_taken() -> None:
    assert fastest({"a": ("recorded", "plain")}, {"a": {"plain": 3.0}}) == {"a": "plain"}
