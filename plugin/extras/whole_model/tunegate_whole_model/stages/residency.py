"""The number of a kernel's blocks that a multiprocessor holds at once.

A barrier between all blocks of a launch ends only if all are on the device at the same time: one
that waits for a place would wait for ever. The rules are those of NVIDIA's occupancy calculator:
warps, registers by the warp, shared memory by the block, and blocks.
"""

from __future__ import annotations

from collections.abc import Mapping

import msgspec

_WARP = 32


class Multiprocessor(msgspec.Struct, frozen=True):
    """A multiprocessor's resources: "Technical Specifications per Compute Capability" in the CUDA
    C++ Programming Guide."""

    threads: int
    blocks: int
    registers: int
    shared_bytes: int
    shared_bytes_of_block: int


class KernelNeeds(msgspec.Struct, frozen=True):
    """Threads of a block, registers of a thread, and bytes of shared memory of a block."""

    threads: int
    registers: int
    shared_bytes: int


_KIB = 1024
_REGISTERS = 64 * _KIB
_REGISTERS_AT_ONCE = 256
"""The unit in which registers are allocated to a warp."""
_PARTITIONS = 4
"""The partitions of a multiprocessor, each with a quarter of the registers; a warp lives in one."""
_SHARED_AT_ONCE = 128
_SHARED_OF_SYSTEM = 1 * _KIB
"""CUDA reserves this much of each block from sm_80 on."""
MULTIPROCESSORS: Mapping[str, Multiprocessor] = {
    "sm_80": Multiprocessor(2048, 32, _REGISTERS, 164 * _KIB, 163 * _KIB),
    "sm_86": Multiprocessor(1536, 16, _REGISTERS, 100 * _KIB, 99 * _KIB),
    "sm_89": Multiprocessor(1536, 24, _REGISTERS, 100 * _KIB, 99 * _KIB),
    "sm_90": Multiprocessor(2048, 32, _REGISTERS, 228 * _KIB, 227 * _KIB),
}


def resident_blocks(needs: KernelNeeds, multiprocessor: Multiprocessor) -> int:
    """Returns the blocks that a multiprocessor holds at once, 0 for a kernel that cannot run
    there."""
    if needs.shared_bytes > multiprocessor.shared_bytes_of_block:
        return 0
    warps = _up(needs.threads, _WARP) // _WARP
    registers = _up(max(1, needs.registers) * _WARP, _REGISTERS_AT_ONCE)
    most_warps = multiprocessor.registers // _PARTITIONS // registers * _PARTITIONS
    shared = _up(needs.shared_bytes + _SHARED_OF_SYSTEM, _SHARED_AT_ONCE)
    return min(
        multiprocessor.blocks,
        multiprocessor.threads // _WARP // warps,
        most_warps // warps,
        multiprocessor.shared_bytes // shared,
    )


def _up(number: int, portion: int) -> int:
    return -(-number // portion) * portion
