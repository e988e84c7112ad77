"""The same built candidates measured one after the other, and beside each
other under DOPpler's control law.

    python -m benchmarks.tuning.parallel_measurement [squeezenet]
        [--candidates 200] [--slots 2]
        [--repeat-ms 10]

Each slot is a process on a core of its own that has all candidates built and run once. All are
measured alone, then by batches with as many at once as the law says, a sample of each batch again
alone, and once more alone: what differs between these is noise. In the end the best of each task
are measured again in turn, alone. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import multiprocessing
import os
import random
import statistics
import time
from collections.abc import Mapping, Sequence
from multiprocessing.connection import Connection, wait
from pathlib import Path
from typing import NamedTuple, Self

import msgspec
import onnx
from scipy.stats import kendalltau

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, named_model
from benchmarks.kit.tables import heading, row
from tunegate.compiler import worker
from tunegate.compiler.build.functions import functions_of
from tunegate.compiler.opening import import_in_layout
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.targets import tvm_target
from tunegate.models.preparation import prepare
from tunegate.tune import candidate_requests as measuring
from tunegate.tune.parallel_measurement import Degree, adjust_degree, corrected_batch, to_check
from tunegate.tune.protocol import Candidate, Measure, Measured

TASKS = 4
BATCH = 16
REPEATS, REPEAT_MS = measuring._REPEATS, measuring._REPEAT_MS
"""The repeats of the product, whose rank pass measures what may win
again. The paper's jobs take 100."""
RANKED = 8


class Parallel(NamedTuple):
    """A pass under the law."""

    corrected_ms: dict[int, float]
    seconds: float
    degrees: list[int]
    errors: list[float]


def main() -> None:
    options = command_line(
        __doc__, "model=squeezenet", candidates=200, slots=2, repeat_ms=REPEAT_MS
    )
    os.environ["TVM_NUM_THREADS"] = "1"  # of the slots, too
    with scratch_folder() as scratch:
        found = candidates(options.model, options.candidates, scratch)
        requests = {
            n: msgspec.structs.replace(request, repeat_ms=options.repeat_ms)
            for n, request in found.items()
        }
        with Slots(requests, options.slots) as slots:
            slots.warm_up(list(requests))
            serial, before = one_by_one(slots, list(requests))
            parallel = in_parallel(slots, list(requests))
            again, after = one_by_one(slots, list(requests))
            winners = [ranked(slots, requests, times) for times in (serial, parallel.corrected_ms)]
        show(requests, serial, again, parallel, winners, (before + after) / 2)


def candidates(name: str, count: int, scratch: Path) -> dict[int, Measure]:
    """Random schedules of the largest tasks, numbered through."""
    onnx.save(named_model(name), scratch / "m.onnx")
    resolved = tvm_target(TARGET)
    prepared = prepare(scratch / "m.onnx", shapes={}, into=scratch / "prepared", path="m.onnx")
    module = import_in_layout(prepared, resolved.target, "m.onnx", ("nhwc",))
    largest = sorted(functions_of(module), key=lambda f: -f.flops * f.weight)[:TASKS]
    found: list[Measure] = []
    for function in largest:
        search = TaskSearch(function.workload, resolved.target, seed=1)
        proposed = search.propose(count // TASKS, ()).candidates[1:]
        found += [request_for(candidate, resolved.export_json(), scratch) for candidate in proposed]
    return {n: numbered(request, n) for n, request in enumerate(found)}


def numbered(request: Measure, number: int) -> Measure:
    """The search counts the candidates of each task for itself."""
    candidate = msgspec.structs.replace(request.candidate, number=number)
    return msgspec.structs.replace(request, candidate=candidate)


def request_for(candidate: Candidate, target_json: str, scratch: Path) -> Measure:
    return Measure(
        candidate=candidate,
        target_json=target_json,
        reference=str(scratch / "none.npy"),
        writes_reference=False,
        loser_ms=float("inf"),
        seed=1,
        repeats=REPEATS,
        repeat_ms=REPEAT_MS,
    )


class Slots:
    """One process for each slot, all of them with every candidate built."""

    def __init__(self, requests: Mapping[int, Measure], count: int) -> None:
        context = multiprocessing.get_context("spawn")
        cores = sorted(os.sched_getaffinity(0))
        encoded = {n: msgspec.msgpack.encode(request) for n, request in requests.items()}
        self._pipes: list[Connection] = []
        self._processes = []
        for slot in range(count):
            ours, theirs = context.Pipe()
            core = cores[-1 - slot % len(cores)]
            process = context.Process(target=serve, args=(theirs, encoded, core), daemon=True)
            process.start()
            self._pipes.append(ours)
            self._processes.append(process)
        for pipe in self._pipes:
            pipe.recv()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for process in self._processes:
            process.kill()
            process.join()

    def __len__(self) -> int:
        return len(self._pipes)

    def warm_up(self, numbers: Sequence[int]) -> None:
        """A first run of everything in every slot: what it costs belongs to no side."""
        for pipe in self._pipes:
            for number in numbers:
                pipe.send(number)
                _received(pipe)

    def alone(self, number: int) -> Measured:
        self._pipes[0].send(number)
        return _received(self._pipes[0])

    def together(self, numbers: Sequence[int], degree: int) -> list[Measured]:
        """Measures at most `degree` of them at once."""
        waiting = list(numbers)
        busy: dict[int, int] = {}
        found = []
        while waiting or busy:
            for slot in range(degree):
                if slot not in busy and waiting:
                    busy[slot] = waiting.pop(0)
                    self._pipes[slot].send(busy[slot])
            wait([self._pipes[slot] for slot in busy])
            for slot in [slot for slot in busy if self._pipes[slot].poll()]:
                del busy[slot]
                found.append(_received(self._pipes[slot]))
        return found


def _received(pipe: Connection) -> Measured:
    measured: Measured = pipe.recv()
    return measured


def serve(pipe: Connection, encoded: Mapping[int, bytes], core: int) -> None:
    requests = {n: msgspec.msgpack.decode(one, type=Measure) for n, one in encoded.items()}
    built = {number: worker._build(request) for number, request in requests.items()}
    os.sched_setaffinity(0, {core})
    pipe.send("ready")
    while True:
        number = pipe.recv()
        pipe.send(worker._measure(requests[number], built[number], 0.0))


def one_by_one(slots: Slots, numbers: Sequence[int]) -> tuple[dict[int, float], float]:
    """Milliseconds of each, and the seconds of all."""
    started = time.monotonic()
    found = {number: slots.alone(number).median_ms for number in numbers}
    return found, time.monotonic() - started


def in_parallel(slots: Slots, numbers: Sequence[int]) -> Parallel:
    started = time.monotonic()
    rng = random.Random(1)
    degree = Degree()
    corrected: dict[int, float] = {}
    degrees, errors = [], []
    for first in range(0, len(numbers), BATCH):
        results: Sequence[Measured] = slots.together(numbers[first : first + BATCH], degree.now)
        degrees.append(degree.now)
        off = 0.0
        if degree.now > 1:
            alone = {number: slots.alone(number) for number in to_check(results, rng)}
            found = corrected_batch(results, alone)
            results, off = found.results, found.error or 0.0
            errors.append(off)
        degree = adjust_degree(degree, error=off, failures=0, most=len(slots))
        corrected.update({result.number: result.median_ms for result in results})
    return Parallel(corrected, time.monotonic() - started, degrees, errors)


def ranked(
    slots: Slots, requests: Mapping[int, Measure], times: Mapping[int, float]
) -> dict[str, int]:
    """The best of each task once its best eight were measured again, alone and in turn."""
    found = {}
    for workload, numbers in by_task(requests).items():
        best = sorted(numbers, key=lambda number: times[number])[:RANKED]
        rounds = [{n: slots.alone(n).median_ms for n in best} for _ in range(3)]
        found[workload] = min(best, key=lambda n: statistics.median(r[n] for r in rounds))
    return found


def by_task(requests: Mapping[int, Measure]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for number, request in requests.items():
        found.setdefault(request.candidate.workload, []).append(number)
    return found


def show(
    requests: Mapping[int, Measure],
    serial: Mapping[int, float],
    again: Mapping[int, float],
    found: Parallel,
    winners: Sequence[Mapping[str, int]],
    serial_seconds: float,
) -> None:
    tasks = by_task(requests)
    truth = {number: min(serial[number], again[number]) for number in requests}
    print(f"{len(requests)} candidates of {len(tasks)} tasks")
    heading(" | alone, once more | beside each other, corrected")
    rows = [again, found.corrected_ms]
    off = [statistics.median(abs(r[n] / serial[n] - 1) for n in requests) for r in rows]
    row("median difference from alone", f"{off[0]:.1%}", f"{off[1]:.1%}")
    taus = [
        statistics.fmean(tau(serial, row, numbers) for numbers in tasks.values()) for row in rows
    ]
    row("Kendall's tau with alone, mean of the tasks", f"{taus[0]:.3f}", f"{taus[1]:.3f}")
    regrets = [regret(truth, tasks, best) for best in winners]
    heading(" | alone | beside each other, corrected")
    print(
        f"| slower than the best after the rank pass, tasks in turn | "
        f"{' '.join(f'{each:.1%}' for each in regrets[0])} | "
        f"{' '.join(f'{each:.1%}' for each in regrets[1])} |"
    )
    saved = 1 - found.seconds / serial_seconds
    row("seconds", f"{serial_seconds:.1f}", f"{found.seconds:.1f} ({saved:+.0%} saved)")
    print(f"degrees: {found.degrees}; errors: {[round(e, 3) for e in found.errors]}")


def regret(
    truth: Mapping[int, float], tasks: Mapping[str, Sequence[int]], winners: Mapping[str, int]
) -> list[float]:
    """Returns the slowdown of each task's winner against its best, as a share."""
    return [
        truth[winners[task]] / min(truth[n] for n in numbers) - 1 for task, numbers in tasks.items()
    ]


def tau(one: Mapping[int, float], other: Mapping[int, float], numbers: Sequence[int]) -> float:
    return float(kendalltau([one[n] for n in numbers], [other[n] for n in numbers]).statistic)


if __name__ == "__main__":
    main()
