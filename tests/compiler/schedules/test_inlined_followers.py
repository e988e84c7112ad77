from __future__ import annotations

import tvm

from tests.compiler.schedules.test_product_tiles import convolution, module_of
from tunegate.compiler.schedules.unscheduled import inline_followers


def test_what_follows_is_computed_where_the_sum_is_written() -> None:
    schedule = tvm.s_tir.Schedule(module_of(convolution(8, 16, 32), constant=False))
    block = schedule.get_sblock("conv2d_nhwc")
    loop = schedule.get_loops(block)[3]
    written = schedule.cache_write(block, 0, "global")
    schedule.reverse_compute_at(written, loop)
    inline_followers(schedule, written)
    left = schedule.get_child_blocks(schedule.get_sblock("root"))
    names = {schedule.get(each).name_hint for each in left}
    assert names == {"pad_temp", "conv2d_nhwc", "conv2d_nhwc_global"}
