"""The rules of CUDA that the stand-in keeps, asked through its own functions, without TVM.

Each program runs in a process of its own: it assigns what it has seen to `seen`.
"""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from tests.cuda_stand_in import programs
from tests.cuda_stand_in.environment import launches
from tests.cuda_stand_in.fixtures import WhatCuda

pytestmark = pytest.mark.cuda_stand_in

KERNELS = """
extern "C" __global__ void __launch_bounds__(128) add(float* a, int n, int by) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) a[i] += by;
}
extern "C" __global__ void __launch_bounds__(64) reverse(float* a) {
  __shared__ float s[64];
  s[threadIdx.x] = a[threadIdx.x];
  __syncthreads();
  a[threadIdx.x] = s[63 - threadIdx.x];
}
extern "C" __global__ void __launch_bounds__(32) sum_of_lanes(int* a) {
  int v = threadIdx.x;
  for (int d = 16; d; d /= 2) v += __shfl_down_sync(0xffffffffu, v, d, 32);
  a[threadIdx.x] = __shfl_sync(0xffffffffu, v, 0, 32);
}
__device__ unsigned arrived;
extern "C" __global__ void __launch_bounds__(32, 1) meet(unsigned* a) {
  if (threadIdx.x == 0) {
    atomicAdd(&arrived, 1u);
    while (*(volatile unsigned*)&arrived < gridDim.x) clock64();
    a[blockIdx.x] = arrived;
  }
}
extern "C" __global__ void trap(float* a) { __trap(); }
extern "C" __global__ void divide(int* a) { a[0] = 1 / (a[1] - a[1]); }
extern "C" __global__ void misaligned(float* a) { *(float4*)(a + 1) = make_float4(1, 2, 3, 4); }
extern "C" __global__ void barriers_apart(float* a) {
  if (threadIdx.x < 8) __barrier_sync_count(1, 16); else __syncthreads();
}
extern "C" __global__ void dynamic(int* a, int n) {
  extern __shared__ int buffer[];
  buffer[threadIdx.x] = threadIdx.x * n;
  __syncthreads();
  a[threadIdx.x] = buffer[blockDim.x - 1 - threadIdx.x];
}
extern "C" __global__ void beyond_shared(float* a, int at) {
  __shared__ float first[64];
  __shared__ float second[64];
  second[threadIdx.x % 64] = 1;
  first[at] = 2;
  __syncthreads();
  a[threadIdx.x] = second[threadIdx.x % 64];
}
extern "C" __global__ void beside_shared(float* a, int at) {
  __shared__ float only[60];
  only[at] = 2;
  a[threadIdx.x] = only[0];
}
extern "C" __global__ void beyond_own(float* a, int at) {
  float before[4] = {}, own[4] = {}, behind[4] = {};
  own[at] = 2;
  a[0] = before[at % 4] + own[0] + behind[at % 4];
}
extern "C" __global__ void unwritten_shared(float* a) {
  __shared__ float never[32];
  __syncthreads();
  a[threadIdx.x] = never[threadIdx.x];
}
extern "C" __global__ void repeat(float* a, int n) {
  for (int i = 0; i < n; ++i) { a[threadIdx.x] = a[threadIdx.x] * 0.5f; }
}
extern "C" __global__ void many_registers(float* a) {
  float sums[200];
  for (int i = 0; i < 200; ++i) sums[i] = a[i];
  for (int i = 0; i < 200; ++i) a[i] = sums[199 - i];
}
extern "C" __global__ void __launch_bounds__(1024) bounded_registers(float* a) {
  float sums[200];
  for (int i = 0; i < 200; ++i) sums[i] = a[i];
  for (int i = 0; i < 200; ++i) a[i] = sums[199 - i];
}
"""
SPOIL_CAPTURE = """
    s, p = c.stream(), c.allocate(256)
    c.begin_capture(s)
    error = {act}
    seen = [error, m.launch("add", 1, 64, p, 64, 1, stream=s), c.end_capture(s)[0]]
"""
FAIL = """
    host, freed = (ctypes.c_float * 1000)(), c.allocate(4096)
    c.runtime.cudaFree(freed)
    begun = {launch}
    free = c.runtime.cudaFree(c.Pointer())
    seen = [begun, c.synchronize(), c.allocation_error(4), m.unload()]
"""


def seen_by(variables: Mapping[str, str], program: str) -> Any:
    return programs.seen_by(variables, KERNELS, program)


def test_kernels_run_in_order_and_threads_wait_for_each_other(cuda_stand_in: WhatCuda) -> None:
    program = """
    p = c.allocate(256)
    c.write(p, range(64))
    errors = [m.launch("add", 1, 64, p, 64, 1), m.launch("reverse", 1, 64, p)]
    q = c.allocate(128)
    errors.append(m.launch("sum_of_lanes", 1, 32, q))
    sums = c.read(q, 32, ctypes.c_int)
    errors.append(m.launch("dynamic", 1, 32, q, 3, shared=128))
    seen = [errors, c.read(p, 3), sums, c.read(q, 2, ctypes.c_int)]
    """
    expected = [[0, 0, 0, 0], [64.0, 63.0, 62.0], [496] * 32, [93, 90]]
    assert seen_by(cuda_stand_in(), program) == expected


def test_all_blocks_of_a_cooperative_launch_are_alive_at_once(cuda_stand_in: WhatCuda) -> None:
    program = """
    p = c.allocate(64)
    started = m.launch("meet", 8, 32, p, cooperative=True)
    met = c.read(p, 8, ctypes.c_int)
    seen = [started, met, m.launch("meet", 4 * 32 + 1, 32, p, cooperative=True)]
    """
    assert seen_by(cuda_stand_in(multiprocessors=4), program) == [0, [8] * 8, 720]


def test_work_runs_when_somebody_waits_for_it(cuda_stand_in: WhatCuda) -> None:
    """Pinned memory is read without waiting, as a device that is late would leave it."""
    program = """
    p, host, s = c.allocate(256), c.pinned(64), c.stream()
    host[0] = 5
    c.copy(p, host, 256, c.TO_DEVICE, s)
    m.launch("add", 1, 64, p, 64, 1, stream=s)
    back = c.pinned(64)
    back[0] = -1
    c.copy(back, p, 256, c.TO_HOST, s)
    host[0] = 7
    early = back[0]
    c.synchronize(s)
    seen = [early, back[0]]
    """
    assert seen_by(cuda_stand_in(), program) == [-1, 8]


def test_a_stream_that_did_not_wait_reads_what_was_there_before(cuda_stand_in: WhatCuda) -> None:
    program = """
    p, back = c.allocate(256), c.pinned(2)
    c.write(p, [1] * 64)
    c.synchronize()
    s, t, done = c.stream(c.NON_BLOCKING), c.stream(c.NON_BLOCKING), c.event()
    m.launch("add", 1, 64, p, 64, 1, stream=s)
    c.copy(back, p, 4, c.TO_HOST, t)
    c.synchronize(t)
    forgotten = back[0]
    c.runtime.cudaEventRecord(done, s)
    c.runtime.cudaStreamWaitEvent(t, done, 0)
    c.copy(back, p, 4, c.TO_HOST, t)
    c.synchronize(t)
    seen = [forgotten, back[0]]
    """
    assert seen_by(cuda_stand_in(), program) == [1, 2]


def test_the_legacy_and_blocking_streams_wait_for_each_other(cuda_stand_in: WhatCuda) -> None:
    program = """
    p, s = c.allocate(256), c.stream()
    c.write(p, [1] * 64)
    m.launch("add", 1, 64, p, 64, 1, stream=s)
    m.launch("reverse", 1, 64, p)
    m.launch("add", 1, 1, p, 1, 5, stream=s)
    c.synchronize(s)
    back = c.pinned(2)
    c.copy(back, p, 8, c.TO_HOST)
    c.synchronize()
    seen = list(back)
    """
    assert seen_by(cuda_stand_in(), program) == [7, 2]


def test_a_capture_records_and_a_graph_repeats(cuda_stand_in: WhatCuda) -> None:
    program = """
    s, p = c.stream(), c.allocate(256)
    c.write(p, [0] * 64)
    c.begin_capture(s)
    m.launch("add", 1, 64, p, 64, 1, stream=s)
    m.launch("add", 1, 64, p, 64, 2, stream=s)
    error, graph = c.end_capture(s)
    meanwhile = c.read(p, 1)
    launched = c.launch_graph(graph, s, times=2)
    c.synchronize(s)
    seen = [error, meanwhile, launched, c.read(p, 1)]
    """
    assert seen_by(cuda_stand_in(), program) == [0, [0.0], 0, [6.0]]


@pytest.mark.parametrize(
    ("act", "error"),
    [
        ("c.synchronize()", 906),
        ('m.launch("add", 1, 64, p, 64, 1)', 906),
        ("c.copy(p, p, 4, c.ON_DEVICE)", 906),
        ("c.synchronize(s)", 900),
        ("c.allocation_error(4)", 900),
        ("c.runtime.cudaFree(p)", 900),
    ],
)
def test_what_spoils_a_capture_on_a_blocking_stream(
    cuda_stand_in: WhatCuda, act: str, error: int
) -> None:
    """The capture is invalid from then on: launches and its end say so."""
    assert seen_by(cuda_stand_in(), SPOIL_CAPTURE.format(act=act)) == [error, 901, 901]


def test_the_limits_of_a_launch(cuda_stand_in: WhatCuda) -> None:
    program = """
    p = c.allocate(4096)
    threads = [
        m.launch("add", 1, 129, p, 1, 1),
        m.launch("trap", 1, 1025, p),
        m.launch("add", 0, 1, p, 1, 1),
    ]
    shared = [
        m.launch("dynamic", 1, 32, p, 1, shared=49 << 10),
        m.allow_shared("dynamic", 100 << 10),
        m.launch("dynamic", 1, 32, p, 1, shared=99 << 10),
        m.allow_shared("dynamic", 228 << 10),
    ]
    seen = [threads, shared, c.Module(TEXT, "sm_100").error]
    """
    assert seen_by(cuda_stand_in(), program) == [[1, 1, 1], [1, 0, 0, 1], 209]


def test_more_registers_than_a_multiprocessor_has(cuda_stand_in: WhatCuda) -> None:
    """Bounds let the assembler keep below it, and it says what it spilled."""
    program = """
    p = c.allocate(800)
    spilled = "bounded_registers" in m.log and " 0 bytes spill" not in m.log.split("\\n")[2]
    seen = [
        m.launch("many_registers", 1, 1024, p),
        m.launch("many_registers", 1, 128, p),
        m.launch("bounded_registers", 1, 1024, p),
        spilled,
    ]
    """
    assert seen_by(cuda_stand_in(), program) == [701, 0, 0, True]


@pytest.mark.parametrize(
    ("launch", "error"),
    [
        ('m.launch("add", 9, 128, c.allocate(4096), 1025, 1)', 700),
        ('m.launch("add", 1, 2, c.allocate(4), 2, 1)', 700),
        ('m.launch("add", 1, 128, c.Pointer(ctypes.addressof(host)), 1, 1)', 700),
        ('m.launch("add", 1, 128, c.Pointer(), 1, 1)', 700),
        ('m.launch("add", 1, 128, freed, 100, 1)', 700),
        ('m.launch("beyond_shared", 1, 64, c.allocate(256), 64)', 700),
        ('m.launch("beside_shared", 1, 1, c.allocate(256), 60)', 700),
        ('m.launch("beyond_own", 1, 1, c.allocate(256), 4)', 700),
        ('m.launch("beyond_own", 1, 1, c.allocate(256), -1)', 700),
        ('m.launch("misaligned", 1, 1, c.allocate(256))', 716),
        ('m.launch("trap", 2, 128, c.allocate(4096))', 719),
        ('m.launch("divide", 1, 1, c.allocate(256))', 719),
        ('m.launch("barriers_apart", 1, 32, c.allocate(4096))', 702),
    ],
)
def test_errors_of_a_kernel_come_with_a_later_call_and_stay(
    cuda_stand_in: WhatCuda, launch: str, error: int
) -> None:
    """The launch itself is begun. What comes after fails, and so does what would clean up."""
    program = FAIL.format(launch=launch)
    assert seen_by(cuda_stand_in(), program) == [0, error, error, error]


def test_what_nobody_has_written_is_no_number(cuda_stand_in: WhatCuda) -> None:
    program = """
    p = c.allocate(128)
    fresh = c.read(p, 1)[0]
    m.launch("unwritten_shared", 1, 32, p)
    seen = [fresh != fresh, c.read(p, 1)[0] != c.read(p, 1)[0]]
    """
    assert seen_by(cuda_stand_in(), program) == [True, True]


def test_a_device_has_only_so_much_memory(cuda_stand_in: WhatCuda) -> None:
    """It is no error that stays: what is given back can be had again."""
    program = """
    p = c.allocate(40 << 20)
    full = c.allocation_error(40 << 20)
    c.runtime.cudaFree(p)
    seen = [full, c.allocation_error(40 << 20), c.synchronize()]
    """
    assert seen_by(cuda_stand_in(memory_mb=64), program) == [2, 0, 0]


def test_a_device_is_lost_for_all_processes(cuda_stand_in: WhatCuda) -> None:
    program = """
    p = c.allocate(256)
    for _ in range(3):
        m.launch("add", 1, 64, p, 64, 1)
    seen = [c.synchronize(), c.allocation_error(4)]
    """
    variables = cuda_stand_in(lost_after=2)
    assert seen_by(variables, program) == [999, 999]
    assert seen_by(variables, "    seen = [m.error, c.allocation_error(4)]") == [999, 999]
    assert Path(variables["NVIDIA_STAND_IN_LOST_MARKER"]).exists()


def test_several_devices_have_memory_and_errors_of_their_own(cuda_stand_in: WhatCuda) -> None:
    program = """
    count = ctypes.c_int()
    c.runtime.cudaGetDeviceCount(ctypes.byref(count))
    foreign = c.allocate(256)
    c.runtime.cudaSetDevice(1)
    other = c.Module("extern \\"C\\" __global__ void touch(float* a) { a[0] = 1; }")
    own = c.allocate(256)
    other.launch("touch", 1, 1, own)
    fine = c.synchronize()
    other.launch("touch", 1, 1, foreign)
    bad = c.synchronize()
    c.runtime.cudaSetDevice(0)
    seen = [count.value, c.runtime.cudaSetDevice(2), fine, bad, c.synchronize()]
    """
    variables = cuda_stand_in(devices=("GPU-one", "GPU-two"))
    assert seen_by(variables, program) == [2, 101, 0, 700, 0]
    assert launches(variables) == (0, 2)


@pytest.mark.parametrize(
    ("visible", "count"),
    [("", 0), ("0", 1), ("1,0", 2), ("GPU-two", 1), ("GPU-none", 0), ("0,7,1", 1), ("-1", 0)],
)
def test_visible_devices_are_chosen_as_the_driver_chooses(
    cuda_stand_in: WhatCuda, visible: str, count: int
) -> None:
    variables = cuda_stand_in(devices=("GPU-one", "GPU-two"))
    program = """
    count = ctypes.c_int()
    c.runtime.cudaGetDeviceCount(ctypes.byref(count))
    seen = count.value
    """
    assert seen_by({**variables, "CUDA_VISIBLE_DEVICES": visible}, program) == count


def test_a_paced_device_takes_the_time_of_its_steps(cuda_stand_in: WhatCuda) -> None:
    """By events and by the counter of whoever waits. A look at that takes 100 ns."""
    program = """
    import time
    s, p = c.stream(), c.allocate(128)
    def taken_by(turns):
        events, found = [c.event(), c.event()], ctypes.c_float()
        began = time.perf_counter_ns()
        for each in events:
            c.runtime.cudaEventRecord(each, s)
            m.launch("repeat", 1, 32, p, turns, stream=s)
        c.synchronize(s)
        spent = time.perf_counter_ns() - began
        c.runtime.cudaEventElapsedTime(ctypes.byref(found), *events)
        return round(found.value * 1000), spent
    seen = [taken_by(turns) for turns in (0, 100, 108)]
    """
    (none, _), (some, spent), (more, _) = seen_by(cuda_stand_in(pace=10**6), program)
    assert (spent, more - none) == (2000 * some + 100, round(1.08 * (some - none)))
