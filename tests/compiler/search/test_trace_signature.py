from __future__ import annotations

from typing import Any

from tunegate.artifacts.tasks import Instruction
from tunegate.compiler.search.space import trace_signature

PURE = {"GetSBlock", "GetLoops", "SamplePerfectTile"}


def trace(block: str, first: str = "v") -> list[Instruction]:
    return [
        ("GetSBlock", [], [block, "main"], [f"{first}0"]),
        ("GetLoops", [f"{first}0"], [], [f"{first}1", f"{first}2"]),
        ("SamplePerfectTile", [f"{first}1"], [2, 64], [f"{first}3", f"{first}4"]),
        ("Split", [f"{first}1", f"{first}3", f"{first}4"], [True, False], [f"{first}5"]),
    ]


def test_names_of_blocks_and_variables_do_not_count() -> None:
    assert (
        trace_signature(trace("conv2d"), PURE).text == trace_signature(trace("b0", "x"), PURE).text
    )


def test_two_blocks_are_not_one() -> None:
    one = [*trace("a"), ("GetSBlock", [], ["a", "main"], ["v9"]), unroll("v9")]
    two = [*trace("a"), ("GetSBlock", [], ["b", "main"], ["v9"]), unroll("v9")]
    assert trace_signature(one, PURE).text != trace_signature(two, PURE).text


def unroll(block: str) -> Instruction:
    return ("Annotate", [block, 16], ["unroll"], [])


def test_what_nobody_uses_is_dropped_and_decisions_move_along() -> None:
    dead: Instruction = ("SamplePerfectTile", ["v2"], [2, 64], ["v7", "v8"])
    longer = trace("a")
    longer.insert(2, dead)
    found = trace_signature(longer, PURE)
    assert found.text == trace_signature(trace("a"), PURE).text
    assert found.moved([(2, (9, 9)), (3, (4, 8))]) == ((2, (4, 8)),)


def test_only_pure_instructions_are_dropped() -> None:
    assert trace_signature(trace("a")[:3], PURE).text == "[]"
    assert trace_signature(trace("a")[:3], PURE - {"SamplePerfectTile"}).text != "[]"


def test_the_sketch_ends_where_postprocessing_begins() -> None:
    after: list[Instruction] = [("EnterPostproc", [], [], []), unroll("v0")]
    assert trace_signature([*trace("a"), *after], PURE) == trace_signature(trace("a"), PURE)


def test_any_other_instruction_attribute_or_order_is_another_form() -> None:
    ours = trace_signature(trace("a"), PURE).text
    for place, change in ((0, 0), (2, 2), (3, 2)):
        other: list[Any] = [list(instruction) for instruction in trace("a")]
        other[place][change] = "Other" if change == 0 else [3, 64]
        assert trace_signature(other, PURE).text != ours


def test_the_number_of_cores_does_not_count() -> None:
    def parallel(extent: int) -> Instruction:
        return ("Annotate", ["v0", extent], ["meta_schedule.parallel"], [])

    assert (
        trace_signature([*trace("a"), parallel(16)], PURE).text
        == trace_signature([*trace("a"), parallel(64)], PURE).text
    )
