"""Blocks that a multiprocessor holds, as NVIDIA's occupancy calculator counts them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_whole_model.stages.residency import MULTIPROCESSORS, KernelNeeds, resident_blocks

KIB = 1024
needs = st.builds(
    KernelNeeds,
    threads=st.integers(1, 1024),
    registers=st.integers(1, 255),
    shared_bytes=st.integers(0, 240 * KIB),
)


@pytest.mark.parametrize(
    ("arch", "threads", "registers", "shared_bytes", "blocks"),
    [
        ("sm_80", 128, 32, 0, 16),  # 64 warps
        ("sm_80", 32, 16, 0, 32),  # blocks
        ("sm_86", 32, 16, 0, 16),
        ("sm_89", 32, 16, 0, 24),
        ("sm_86", 256, 32, 0, 6),  # 48 warps
        ("sm_90", 128, 96, 0, 5),  # registers
        ("sm_90", 256, 255, 0, 1),
        ("sm_80", 128, 32, 48 * KIB, 3),  # shared memory: 49 of 164 KiB
        ("sm_86", 128, 32, 48 * KIB, 2),
        ("sm_90", 128, 32, 48 * KIB, 4),
        ("sm_80", 128, 32, 163 * KIB, 1),
        ("sm_80", 128, 32, 164 * KIB, 0),
    ],
)
def test_the_scarcest_decides(
    arch: str, threads: int, registers: int, shared_bytes: int, blocks: int
) -> None:
    assert resident_blocks(
        KernelNeeds(threads, registers, shared_bytes), MULTIPROCESSORS[arch]
    ) == (blocks)


@pytest.mark.parametrize("arch", sorted(MULTIPROCESSORS))
@given(needs=needs)
def test_what_is_resident_takes_no_more_than_there_is(arch: str, needs: KernelNeeds) -> None:
    has = MULTIPROCESSORS[arch]
    blocks = resident_blocks(needs, has)
    assert blocks <= has.blocks
    assert blocks * needs.threads <= has.threads
    assert blocks * needs.threads * needs.registers <= has.registers
    assert blocks * needs.shared_bytes <= has.shared_bytes
