from __future__ import annotations

import msgspec

from tests.support.measured_cells import CELL, make_build, make_builds
from tunegate.artifacts.builds import CellCandidates
from tunegate.measure.choose_runtime import NOTHING_FIXED, Fixed, replaced, restricted

TVM = make_build("tvm")
ONNX_RUNTIME = msgspec.structs.replace(make_build("ort"), runtime="onnxruntime")
BOTH = CellCandidates(cell=CELL, base=(TVM, ONNX_RUNTIME), head=(TVM, ONNX_RUNTIME))


def test_where_nothing_is_fixed_everything_stays() -> None:
    assert restricted([BOTH], NOTHING_FIXED) == (BOTH,)
    chosen = make_builds(TVM, ONNX_RUNTIME)
    assert replaced([chosen], NOTHING_FIXED) == (chosen,)


def test_a_side_keeps_the_builds_of_the_runtime_that_is_wanted_of_it() -> None:
    (found,) = restricted([BOTH], Fixed(runtimes={"head": "onnxruntime"}))
    assert (found.base, found.head) == (BOTH.base, (ONNX_RUNTIME,))
    (found,) = restricted([BOTH], Fixed(runtimes={"base": "tvm"}))
    assert (found.base, found.head) == ((TVM,), BOTH.head)


def test_a_build_that_was_given_takes_the_place_of_the_one_that_was_chosen() -> None:
    given = make_build("given")
    (found,) = replaced([make_builds(TVM, ONNX_RUNTIME)], Fixed(builds={"base": given}))
    assert (found.base, found.head) == (given, ONNX_RUNTIME)
    (found,) = replaced([make_builds(TVM, ONNX_RUNTIME)], Fixed(builds={"head": given}))
    assert (found.base, found.head) == (TVM, given)
