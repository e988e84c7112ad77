"""Nests in stages, with a place for each buffer."""

from __future__ import annotations

import msgspec
import pytest

from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate_whole_model.persistent.stage_program import (
    launch_blocks,
    require_sound,
    stage_program,
)
from whole_model_tests.models import staged, whole


def test_a_model_writes_its_output_where_the_caller_wants_it() -> None:
    model = whole("chain", 128)
    found = staged(model, "plain", 128)
    assert found.nests[0].arguments[found.nests[0].code.order.index(0)] == "input_0"
    assert "output_0 + 0" in found.nests[-1].arguments
    assert found.barriers == 2
    require_sound(found, (1, 5))


def test_a_stage_too_few_is_refused() -> None:
    found = staged(whole("chain", 128), "plain", 128)
    with pytest.raises(NotOfferedError, match="its stages are wrong for 2 blocks"):
        require_sound(found._replace(stages=(0, 0, 1)), (2,))


def test_the_nests_of_a_kernel_are_a_program_by_themselves() -> None:
    found = staged(whole("transformer", 128), "plain", 128)
    only = found.only(3, 2)
    assert [nest.buffers for nest in only.nests] == [nest.buffers for nest in found.nests[3:5]]
    assert min(only.stages) == 0


def test_threads_alone_are_shared_out_to_as_few_blocks_as_hold_them() -> None:
    (ways,) = whole("conv", 128).ways.values()
    code = ways["plain"].codes[0]
    assert not code.is_together
    assert launch_blocks(code, 256) == -(-code.block_count * code.thread_count // 256)


def test_an_output_that_no_kernel_writes_is_refused() -> None:
    model = whole("chain", 128)
    ways = {symbol: found["plain"] for symbol, found in model.ways.items()}
    given = msgspec.structs.replace(model.program, outputs=model.program.inputs)
    with pytest.raises(UnsupportedModelError, match="an output is an input"):
        stage_program(given, ways, 128)
    twice = msgspec.structs.replace(model.program, outputs=model.program.outputs * 2)
    with pytest.raises(UnsupportedModelError, match="two outputs are one"):
        stage_program(twice, ways, 128)
