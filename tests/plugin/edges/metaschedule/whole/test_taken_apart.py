"""A call becomes one of each nest, with what lies between the nests behind the arena."""

from __future__ import annotations

from itertools import pairwise

from tests.plugin.edges.metaschedule.native.test_one_launch import BYTES, _doubled, _program
from tunegate.edges.metaschedule.whole.nests import nests_of
from tunegate.edges.metaschedule.whole.taken_apart import taken_apart
from tunegate.whole_model.parts import depends


def test_each_call_has_buffers_of_its_own_between_its_nests() -> None:
    program = _program(2, threads=1)
    found = taken_apart(program, {"double": nests_of(_doubled())})
    assert [call.symbol for call in found.calls] == ["double_nest0", "double_nest1"] * 2
    between = [call.buffers[-1].at for call in found.calls[::2]]
    assert between == [2 * BYTES, 3 * BYTES]
    pairs = pairwise(found.parts)
    assert all(depends(later, earlier) for earlier, later in pairs)
