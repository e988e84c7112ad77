"""The ways of a kernel are those that fit."""

from __future__ import annotations

import pytest

from tunegate_whole_model.persistent.ways import Scheduled
from whole_model_tests.models import open_model, whole


def test_one_thread_for_each_element_always_fits() -> None:
    for threads in (128, 256):
        ways = whole("transformer", threads).ways
        assert all("plain" in found for found in ways.values())


def test_a_reduction_by_256_threads_is_no_way_for_blocks_of_128() -> None:
    (softmax,) = (symbol for symbol in whole("transformer", 256).ways if "softmax" in symbol)
    assert list(whole("transformer", 256).ways[softmax]) == ["recorded", "plain"]
    assert list(whole("transformer", 128).ways[softmax]) == ["plain"]


def test_schedules_of_records_stand_before_the_default_ones() -> None:
    chain = open_model("chain")
    module = chain.scheduled.plain
    model = chain._replace(scheduled=Scheduled(module.clone(), module)).at(128)
    assert [list(ways) for ways in model.ways.values()] == [["recorded", "default", "plain"]]


@pytest.mark.parametrize("name", ["conv", "chain", "transformer"])
def test_every_call_has_its_kernel(name: str) -> None:
    model = whole(name, 256)
    assert {call.symbol for call in model.program.calls} == set(model.ways)
