"""A call becomes one of each nest, with what lies between the nests behind the arena."""

from __future__ import annotations

from itertools import pairwise

from tunegate_whole_model.nests.nests import nests_of
from tunegate_whole_model.nests.taken_apart import taken_apart
from tunegate_whole_model.stages.parts import depends
from whole_model_tests.test_native_one_launch import BYTES, _doubled, _program


def test_each_call_has_buffers_of_its_own_between_its_nests() -> None:
    program = _program(2, threads=1)
    found = taken_apart(program, {"double": nests_of(_doubled())})
    assert [call.symbol for call in found.calls] == ["double_nest0", "double_nest1"] * 2
    between = [call.buffers[-1].at for call in found.calls[::2]]
    assert between == [2 * BYTES, 3 * BYTES]
    pairs = pairwise(found.parts)
    assert all(depends(later, earlier) for earlier, later in pairs)
