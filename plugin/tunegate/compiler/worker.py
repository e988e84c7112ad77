"""A persistent child that builds and times one candidate at a time, without tar, linker or
re-load."""

import faulthandler
import json
import math
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import tvm

from tunegate.compiler.build import single_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.layouts.packing import MAIN, split_kernel
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.errors import EnvironmentUnfitError
from tunegate.models.reference.tolerance import differs
from tunegate.system.clock import derive_seed
from tunegate.system.nvidia.device_errors import raise_lost_device
from tunegate.system.nvidia.kernel_clock import kernel_clock
from tunegate.system.output.temporary_folder import TemporaryFolder
from tunegate.system.processes.memory_limit import is_of_machine
from tunegate.tune.device_slots import in_slot
from tunegate.tune.protocol import Measure, Measured
from tunegate_cache.format.records import CONFIRMED_MS, CONFIRMED_REPEATS

Request = Measure

_ELF = b"\x7fELF"
_FIRST_RUN_MS = 10
_SLOW_MS = 40.0
"""A run this long is timed once: it needs no average, and such a candidate is hardly the best."""
_LONG_MS = 200.0
"""From this length on, the extra time of a first run does not matter."""


def handle_request(request: Measure) -> Measured:
    """Builds, runs, checks and times a candidate. Any error is this candidate's result."""
    start = time.monotonic()
    try:
        with _exit_on_hang(request):
            kernel = _build(request)
            # Machine code is made when the function is first looked up:
            # not while it has the device.
            _ = kernel.function[MAIN]
    except Exception as error:
        # any compiler error is this candidate's; the next one gets a healthy worker
        failure = _compile_failure(request, _error_line(error), time.monotonic() - start)
        return msgspec.structs.replace(failure, from_outside=is_of_machine(error))
    return _measure(request, kernel, time.monotonic() - start)


def library_of(request: Measure) -> bytes:
    """Returns the candidate as a library, for `handle_with_library` on another machine; the reason
    as text if it does not compile."""
    try:
        with TemporaryFolder() as folder:
            library = Path(folder) / "candidate.so"
            _build(request).function.export_library(str(library))
            return library.read_bytes()
    except Exception as error:
        return _error_line(error).encode()


def handle_with_library(library: bytes, request: Measure) -> Measured:
    """Does what `handle_request` does, with a library from `library_of`. Its build time is unknown
    here."""
    if not library.startswith(_ELF):
        return _compile_failure(request, library.decode(errors="replace"), 0.0)
    start = time.monotonic()
    with TemporaryFolder() as folder:
        file = Path(folder) / "candidate.so"
        file.write_bytes(library)
        module = tvm.ir.load_json(request.candidate.module)
        function = tvm.runtime.load_module(str(file))
    kernel = single_kernel.SingleKernel(
        function, single_kernel.kernel_device(_target_of(request)), split_kernel(module)
    )
    return _measure(request, kernel, time.monotonic() - start)


def _measure(
    request: Measure, kernel: single_kernel.SingleKernel, build_seconds: float
) -> Measured:
    number = request.candidate.number
    start = time.monotonic()
    waited_seconds = 0.0
    try:
        arguments = _arguments(request, kernel)
        ready = time.monotonic()
        with in_slot(request), _exit_on_hang(request):
            waited_seconds = time.monotonic() - ready
            result = _run(request, kernel, arguments)
            if result.status == "wrong":
                # An earlier candidate may have overwritten the kept inputs.
                single_kernel.sample_inputs.cache_clear()
                arguments = _arguments(request, kernel)
                result = _run(request, kernel, arguments)
    except EnvironmentUnfitError as error:
        result = Measured(number=number, status="runtime", unfit=str(error))
    except Exception as error:
        raise_lost_device(error)
        # likewise for the runtime
        single_kernel.sample_inputs.cache_clear()
        result = Measured(
            number=number,
            status="runtime",
            detail=_error_line(error),
            from_outside=is_of_machine(error),
        )
    return msgspec.structs.replace(
        result,
        build_seconds=build_seconds,
        run_seconds=time.monotonic() - start,
        waited_seconds=waited_seconds,
    )


def _compile_failure(request: Measure, reason: str, seconds: float) -> Measured:
    number = request.candidate.number
    return Measured(number=number, status="compile", build_seconds=seconds, detail=reason)


@contextmanager
def _exit_on_hang(request: Measure) -> Iterator[None]:
    """Ends this process if the body hangs, even while Python's lock is held: an endless kernel must
    not keep the device."""
    if request.watched_seconds is None:
        yield
        return
    faulthandler.dump_traceback_later(request.watched_seconds, exit=True)
    try:
        yield
    finally:
        faulthandler.cancel_dump_traceback_later()


def _build(request: Measure) -> single_kernel.SingleKernel:
    target = _target_of(request)
    load_intrinsics(str(target.kind.name))
    vectorize_elementary_functions()
    # The module was serialized by this run's own searcher, a moment ago.
    module = tvm.ir.load_json(request.candidate.module)
    return single_kernel.built_kernel(module, target)


def _target_of(request: Measure) -> Any:
    return tvm.target.Target(json.loads(request.target_json))


def _arguments(request: Measure, kernel: single_kernel.SingleKernel) -> list[Any]:
    """Returns the arguments of `main`, with constants packed as in a build."""
    device = kernel.device
    *inputs, output = request.candidate.arguments
    # An earlier candidate's output must not stand in for this one's.
    samples = single_kernel.sample_inputs(tuple(inputs), device, request.seed)
    operands = [*samples, single_kernel.sample(output, device, derive_seed(request.seed, "output"))]
    return kernel.arguments(operands)


def _run(request: Measure, kernel: single_kernel.SingleKernel, arguments: list[Any]) -> Measured:
    number, function, device = request.candidate.number, kernel.function, kernel.device
    start = time.perf_counter_ns()
    function[MAIN](*arguments)
    device.sync()
    only = time.perf_counter_ns() - start
    wrong = _check(request, arguments[-1].numpy())
    if wrong:
        return Measured(number=number, status="wrong", detail=wrong)
    if _is_hopeless(request, only / 1e6):
        return Measured(number=number, status="ok", nanoseconds=(only,))
    take_times = (
        _times_by_kernel_clock
        if request.place and request.place.has_kernel_clock
        else _times_by_events
    )
    first = take_times(function, device, arguments, repeats=1, milliseconds=_FIRST_RUN_MS)
    if first[0] / 1e6 > _enough_ms(request):
        return Measured(number=number, status="ok", nanoseconds=first)
    times = take_times(
        function, device, arguments, repeats=request.repeats, milliseconds=request.repeat_ms
    )
    return Measured(number=number, status="ok", nanoseconds=times)


def _enough_ms(request: Measure) -> float:
    """Returns the milliseconds above which a candidate is timed once. A confirmation never is: one
    slow moment of the machine must not reject the fastest so far."""
    return math.inf if _is_confirmation(request) else min(request.loser_ms, _SLOW_MS)


def _is_hopeless(request: Measure, first_run_ms: float) -> bool:
    """Returns whether the first run was far too slow. A default schedule may take seconds without
    three repeats: only the distance to it matters."""
    if _is_confirmation(request):
        return first_run_ms > CONFIRMED_MS
    if request.writes_reference:
        return first_run_ms > _SLOW_MS
    return first_run_ms > max(_LONG_MS, request.loser_ms)


def _is_confirmation(request: Measure) -> bool:
    return request.repeats >= CONFIRMED_REPEATS


def _times_by_kernel_clock(
    function: Any, device: Any, arguments: list[Any], *, repeats: int, milliseconds: int
) -> tuple[int, ...]:
    """Returns the kernel's own times in ns, without the work of others on the device."""
    clock, main = kernel_clock(), function[MAIN]
    if clock is None:
        raise EnvironmentUnfitError("CUPTI was permitted when this run began, and is not now")

    def inference() -> None:
        main(*arguments)
        device.sync()

    return clock.repeat_ns(inference, repeats=repeats, milliseconds=milliseconds)


def _times_by_events(
    function: Any, device: Any, arguments: list[Any], *, repeats: int, milliseconds: int
) -> tuple[int, ...]:
    evaluator = function.time_evaluator(
        MAIN, device, number=1, repeat=repeats, min_repeat_ms=milliseconds
    )
    return tuple(max(1, round(float(s) * 1e9)) for s in evaluator(*arguments).results)


def _check(request: Measure, output: Any) -> str:
    reference = Path(request.reference)
    if request.writes_reference:
        partial = reference.with_suffix(".partial.npy")
        np.save(partial, output)
        partial.rename(reference)
        return ""
    if not reference.exists():
        return ""  # no default schedule could run here; the whole model is checked after building
    return differs(output, np.load(reference))


def _error_line(error: Exception) -> str:
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return f"{type(error).__name__}: {lines[-1][:200]}" if lines else type(error).__name__
