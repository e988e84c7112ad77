"""The fresh process of one side of a launch: loads, warms up, serves blocks of timings."""

import gc
import itertools
import os
import statistics
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from tunegate.measure import bench_messages
from tunegate.runtimes import loading
from tunegate.runtimes.runtime import Inference
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.processes.memory_limit import memory_problem

Request = bench_messages.BenchRequest

_STATUS = Path("/proc/self/status")
_THROWN_AWAY, _THROWN_SECONDS = 3, 1.0
_MIN_WARM_UP = 10
_WINDOW = 5
_STEADY = 0.02
_MAX_WARM_UP_SECONDS = 30.0
_LEAST_WORKSPACE_BYTES = 2**20
"""Less counts as this: a few pages more or less are no growth."""
_loaded: list[Iterator[Inference]] = []
"""The inferences of the loaded artifact, in turn without end."""

# The main thread's stack begins at a random address, and where a kernel's spilled registers lie on
# it slows some processes for their whole life: by 7% in two of three, seen on a convolutional
# network. A thread's stack begins on a page boundary in every process.
_thread = ThreadPoolExecutor(1)


def handle_request(request: bench_messages.BenchRequest) -> bench_messages.BenchReply:
    """Serves one request, always in the same thread."""
    return _thread.submit(_answer, request).result()


def _answer(request: bench_messages.BenchRequest) -> bench_messages.BenchReply:
    """Answers a request. A model that does not run is a reply, not a crash."""
    try:
        match request:
            case bench_messages.Start():
                return _start(request)
            case bench_messages.Block():
                return _time(_loaded[0], request.inferences, request.most_seconds)
            case bench_messages.Profile():
                _pin(request.threads)
                directory, libraries = Path(request.artifact), request.libraries
                return bench_messages.Profiled(
                    loading.operators_ms(directory, request.inferences, request.seed, libraries)
                )
            case bench_messages.Sample():
                return _sample(request.start)
            case bench_messages.ProfileBoth():
                _pin(request.threads)
                return loading.layers_of_both(request)
    except Exception as error:  # noqa: BLE001 -- the runtimes' errors have no common base class
        raise_lost_device(error)
        lines = str(error).strip().splitlines() or [type(error).__name__]
        return bench_messages.Broken(memory_problem(error) or lines[-1][:300])


def _start(request: bench_messages.Start) -> bench_messages.Ready:
    """Starts the artifact, or restarts it for other inputs, after dropping the loaded one."""
    _loaded.clear()
    _pin(request.threads)
    source = Path(request.artifact), request.seed, request.inputs, request.case, request.libraries
    began = time.process_time()
    runs = loading.bound_inferences(*source)
    first_load_ms = 1e3 * (time.process_time() - began)
    before = _memory_bytes("RssAnon")
    runs[0]()
    workspace_bytes = _added_bytes(before)
    load_ms = None
    if request.times_load:
        del runs  # so that the peak of memory is not that of two
        runs, load_ms = loading.timed_inferences(*source)
    if request.slowdown_percent:
        runs = tuple(_slow_down(run, request.slowdown_percent / 100) for run in runs)
    recent = _warm_up(itertools.cycle(runs), request.warm_up_seconds)
    _loaded.append(itertools.cycle(runs))  # both sides begin with the first input
    gc.disable()
    if not request.times_load:  # what the loads before have freed may be in use again
        workspace_bytes = _added_bytes(before)
    return bench_messages.Ready(
        recent, _memory_bytes("VmHWM"), workspace_bytes, load_ms, first_load_ms
    )


def _sample(start: bench_messages.Start) -> bench_messages.Sampled:
    """Returns samples of the outputs, of an artifact that is loaded after the timed one is gone:
    the limit of memory is for one."""
    _loaded.clear()
    artifact, libraries = Path(start.artifact), start.libraries
    outputs = loading.sampled_outputs(artifact, start.seed, start.inputs, start.case, libraries)
    return bench_messages.Sampled(tuple(outputs))


def _slow_down(run: Inference, share: float) -> Inference:
    """Returns an inference that takes longer, as a slower model would: the added wait suffers from
    the same disturbances."""
    counter = time.perf_counter_ns

    def slower() -> object:
        begin = counter()
        output = run()
        now = counter()
        until = now + (now - begin) * share
        while counter() < until:
            pass
        return output

    return slower


def _added_bytes(before: int) -> int:
    """Returns the memory that running has added since then; 0 on other systems than Linux."""
    return before and max(_LEAST_WORKSPACE_BYTES, _memory_bytes("RssAnon") - before)


def _memory_bytes(kind: str) -> int:
    """Returns this process's memory by Linux's name for it, in bytes; 0 on other systems."""
    for line in _STATUS.read_text().splitlines() if _STATUS.exists() else ():
        if line.startswith(f"{kind}:"):
            return int(line.split()[1]) * 1024
    return 0


def _pin(threads: int) -> None:
    """Pins the process, so that both sides of a launch use the very same cores: otherwise a launch
    would compare two cores and what else runs on them."""
    cores = sorted(os.sched_getaffinity(0))
    if threads < len(cores):
        os.sched_setaffinity(0, cores[-threads:])


def _warm_up(runs: Iterator[Inference], seconds: float) -> float:
    """Runs until the medians of the last windows agree, at most for `seconds`."""
    begin = time.monotonic()
    medians: list[float] = []
    while True:
        times = [_once(next(runs)) for _ in range(_WINDOW)]
        medians.append(statistics.median(times))
        took = time.monotonic() - begin
        last = medians[-3:]
        steady = len(last) == 3 and max(last) <= (1 + _STEADY) * min(last)  # noqa: PLR2004
        enough = took >= seconds and len(medians) * _WINDOW >= _MIN_WARM_UP
        if (enough and (steady or took >= 2 * seconds)) or took >= _MAX_WARM_UP_SECONDS:
            return statistics.median(medians[-3:])


def _time(runs: Iterator[Inference], inferences: int, most_seconds: float) -> bench_messages.Timed:
    """Times inferences, at most for `most_seconds`: another process on the same cores can make one
    a thousand times longer. The first ones are thrown away, fewer of a slow model."""
    counter = time.perf_counter_ns
    began = counter()
    thrown_away = 0
    while thrown_away < _THROWN_AWAY and counter() - began < _THROWN_SECONDS * 1e9:
        next(runs)()
        thrown_away += 1
    until = counter() + int(most_seconds * 1e9)
    times: list[int] = []
    while len(times) < inferences:
        run = next(runs)
        begin = counter()
        run()
        now = counter()
        times.append(now - begin)
        if now >= until:
            break
    return bench_messages.Timed(tuple(times), thrown_away)


def _once(run: Inference) -> float:
    begin = time.perf_counter()
    run()
    return (time.perf_counter() - begin) * 1e3
