import random
from typing import Any

import msgspec
import pytest
import tvm
import tvm_ffi
from tvm import te

from tunegate.artifacts.tasks import Instruction
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.search.space import DesignSpace, trace_signature
from tunegate.compiler.search.workload import Workload, canonical_workload
from tunegate.tune.protocol import Schedule


def product(m: int, n: int, k: int, dtype: str = "float32", name: str = "C") -> Any:
    a = te.placeholder((m, k), dtype, name="A" + name)
    b = te.placeholder((k, n), dtype, name="B" + name)
    axis = te.reduce_axis((0, k), "k" + name)
    c = te.compute((m, n), lambda i, j: te.sum(a[i, axis] * b[axis, j], axis=axis), name=name)
    return te.create_prim_func([a, b, c])


def scaled(factor: float) -> Any:
    a = te.placeholder((8, 8), "float32", name="A")
    return te.create_prim_func([a, te.compute((8, 8), lambda i, j: a[i, j] * factor, name="B")])


def digest(function: Any) -> str:
    return canonical_workload(function).digest


def test_names_do_not_count() -> None:
    assert digest(product(32, 32, 32)) == digest(product(32, 32, 32, name="Other"))


@pytest.mark.parametrize(
    "other", [product(32, 32, 64), product(32, 64, 32), product(32, 32, 32, "float16")]
)
def test_an_extent_or_a_dtype_makes_another_workload(other: Any) -> None:
    assert digest(product(32, 32, 32)) != digest(other)


def test_shapes_of_one_kind_share_a_skeleton_and_differ_in_extents() -> None:
    small = canonical_workload(product(64, 64, 64)).shape
    large = canonical_workload(product(512, 128, 2048)).shape
    assert small.skeleton == large.skeleton
    assert len(small.extents) == len(large.extents)
    assert set(large.extents) == {512, 128, 2048}


def test_a_dtype_makes_another_skeleton() -> None:
    half = canonical_workload(product(64, 64, 64, "float16")).shape
    assert half.skeleton != canonical_workload(product(64, 64, 64)).shape.skeleton


def test_a_scalar_weight_folded_into_the_code_does_not_make_another_workload() -> None:
    assert digest(scaled(0.25)) == digest(scaled(0.75))


def test_the_canonical_module_computes_the_same() -> None:
    workload: Workload = canonical_workload(product(32, 32, 32, name="Odd name"))
    schedule = tvm.s_tir.Schedule(workload.module)
    assert schedule.get_sblock("b1") is not None


load_intrinsics("llvm")
TARGET = tvm.target.Target({"kind": "llvm", "mcpu": "haswell", "num-cores": 2})


def space_of(workload: Workload, seed: int = 1) -> DesignSpace:
    return DesignSpace(workload, TARGET, seed)


def described(space: DesignSpace, count: int = 12) -> list[tuple[Schedule, Any]]:
    found = []
    for schedule in space.sample(count, random.Random(3)):
        name = space.describe(schedule.trace)
        assert name is not None
        found.append((name, schedule))
    return found


def test_the_templates_do_not_depend_on_the_seed() -> None:
    workload = canonical_workload(product(64, 64, 64))
    assert set(space_of(workload, 1).templates) == set(space_of(workload, 99).templates)


def test_decisions_replay_to_the_very_same_module_in_another_space() -> None:
    mine = space_of(canonical_workload(product(64, 48, 80)))
    theirs = space_of(canonical_workload(product(64, 48, 80, name="renamed")), seed=7)
    for schedule, sampled in described(mine):
        replayed = theirs.replay(schedule)
        assert replayed is not None
        assert tvm_ffi.structural_equal(replayed.mod, sampled.mod)


def test_a_source_of_another_shape_is_refitted_to_exact_divisors() -> None:
    source = space_of(canonical_workload(product(512, 512, 512)))
    here = space_of(canonical_workload(product(500, 500, 500)))
    for schedule, _ in described(source, 4):
        moved = here.refit(schedule)
        assert moved is not None
        tiles = [values for _, values in moved.decisions if len(values) > 2]
        assert tiles
        for values in tiles:
            extent = 1
            for value in values:
                extent *= value
            assert extent == 500


@pytest.mark.parametrize("factor", [0, -1, 2**40])
def test_a_hostile_factor_is_refused_before_tvm_sees_it(factor: int) -> None:
    space = space_of(canonical_workload(product(64, 64, 64)))
    schedule, _ = described(space, 1)[0]
    index, values = schedule.decisions[0]
    hostile = ((index, (factor, *values[1:])), *schedule.decisions[1:])
    assert space.replay(msgspec.structs.replace(schedule, decisions=hostile)) is None


def test_a_missing_decision_or_a_foreign_template_is_refused() -> None:
    space = space_of(canonical_workload(product(64, 64, 64)))
    schedule, _ = described(space, 1)[0]
    assert space.replay(Schedule(schedule.template, schedule.decisions[1:])) is None
    assert space.replay(Schedule("0" * 64, schedule.decisions)) is None
    out_of_range = ((10**8, (1, 1)), *schedule.decisions)
    assert space.replay(Schedule(schedule.template, out_of_range)) is None


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
    assert found.renumber([(2, (9, 9)), (3, (4, 8))]) == ((2, (4, 8)),)


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
