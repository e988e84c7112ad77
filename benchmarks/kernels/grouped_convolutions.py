"""Grouped convolutions of one to C groups, beside ONNX Runtime and OpenVINO.

    python -m benchmarks.kernels.grouped_convolutions [--shapes 64x56 128x28 256x14]
        [--groups 1 2 4 ...] [--window 3] [--trials 16] [--seconds 20] [--threads 2] [--save NAME]

A shape is channels x width: as many channels out as in, a square image, a window of 3, a bias and
an activation. TVM's own build of it has no schedule (its rules for grouped convolutions are gone).
Every number of groups has our default schedule, and is tuned in two search spaces:
that of the convolution as it is written (what there was before: TVM's own rules with channels
last), and that with vectors of channels too. Each gets so many candidates, or seconds where these
end first. What was found, ONNX Runtime and OpenVINO (where it is installed) are timed in turn, and
the least of all rounds counts. The last column is the time times G over the time at G = 1. What
is saved already is not made a second time but with `--again`: `--save NAME --merge` goes on.
"""

from __future__ import annotations

import math
import os
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import numpy as np
import onnx
import onnxruntime
import tvm
from onnx import TensorProto, helper, numpy_helper
from tvm import relax
from tvm.relax.frontend.onnx import from_onnx

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.in_process import imported, measured
from benchmarks.kit.results import saved_rows
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.build.single_kernel import SingleKernel, built_kernel
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.runtime_alone import BRIEF_WAITS, thread_variables
from tunegate.compiler.schedules.algorithm_variants import GROUP_VECTORS, variants_of
from tunegate.compiler.schedules.default_schedule import with_default_schedule
from tunegate.compiler.search import space
from tunegate.compiler.search.search import TaskSearch
from tunegate.compiler.targets import ResolvedTarget, tvm_target
from tunegate.config import TargetConfig
from tunegate.tune.prior import prior_of
from tunegate.tune.protocol import DEFAULT, Candidate

BATCH = 8
ROUNDS, ROUND_SECONDS = 40, 0.002
REST_SECONDS = 0.02
"""Threads that wait awake for their next work, in which they hold the cores of whoever is next."""
ABSENT = "–"
TITLES = (
    "channels, width, G, threads | TVM's own build, ms | default, ms | as written, tuned, ms | "
    "tuned, ms | the best is | ONNX Runtime, ms | OpenVINO, ms | of ONNX Runtime's | time x G"
)
TUNED = 4


class Case(NamedTuple):
    """One convolution."""

    channels: int
    width: int
    groups: int
    window: int


def main() -> None:
    options = command_line(
        __doc__,
        shapes=["64x56", "128x28", "256x14"],
        groups=[0],
        window=3,
        trials=16,
        seconds=20.0,
        threads=1,
        again=False,
    )
    load_intrinsics("llvm")
    done = {} if options.again else saved_rows()
    heading(TITLES, (0, 5))
    threads: int = options.threads
    os.environ |= thread_variables(threads) | BRIEF_WAITS  # read when the first kernel runs
    target = tvm_target(TargetConfig(name="cpu", threads=threads))
    for shape in options.shapes:
        channels, width = map(int, shape.split("x"))
        first = math.nan
        for groups in chosen(options.groups, channels):
            case = Case(channels, width, groups, options.window)
            if (known := done.get(key := key_of(case, threads))) is None:
                times, form = timed(case, target, options.trials, options.seconds, threads)
                first = times["tuned"] if groups == 1 else first
                show(key, times, form, times["tuned"] * groups / first)
            elif groups == 1:
                first = float(known[TUNED])


def key_of(case: Case, threads: int) -> str:
    return f"{case.channels}, {case.width}, {case.groups}, {threads}"


def show(key: str, times: dict[str, float], form: str, scaled: float) -> None:
    cells = [f"{times[name]:.4f}" for name in ("stock", "default", "as written", "tuned")]
    others = [f"{times[name]:.4f}" if name in times else ABSENT for name in ("ort", "openvino")]
    ratio = f"{times['tuned'] / times['ort']:.2f}"
    row(key, *cells, form, *others, ratio, ABSENT if math.isnan(scaled) else f"{scaled:.2f}")


def chosen(groups: Sequence[int], channels: int) -> list[int]:
    """Powers of two up to the channels, or those that were asked for."""
    asked = [number for number in groups if number and channels % number == 0]
    return asked or [
        1 << power for power in range(channels.bit_length()) if channels % (1 << power) == 0
    ]


def timed(
    case: Case, target: ResolvedTarget, trials: int, seconds: float, threads: int
) -> tuple[dict[str, float], str]:
    """Milliseconds by what was timed, and the form of the fastest candidate."""
    proto = model(case)
    with scratch_folder() as folder:
        functions = imported(proto, folder / "model", target)
        (function,) = (each for each in functions if "conv2d" in each.name)
        with only_direct():
            written, _ = best_of(function, target, trials, seconds, folder / "written")
        tuned, form = best_of(function, target, trials, seconds, folder / "tuned")
    default = with_default_schedule(function.workload.module, target.target)
    kernels = {"default": default, "as written": written, "tuned": tuned}
    runs: dict[str, Callable[[], object]] = {
        name: runner(built_kernel(module, target.target), case) for name, module in kernels.items()
    }
    runs["stock"] = stock_build(proto, case, target)
    runs["ort"] = onnx_runtime(proto, case, threads)
    other = openvino(proto, case, threads)
    return in_turn(runs | ({"openvino": other} if other else {})), form


def in_turn(runs: dict[str, Callable[[], object]]) -> dict[str, float]:
    """The least milliseconds of all rounds: what else the machine does only adds to them."""
    counts = {}
    for name, run in runs.items():
        run()
        once = seconds_of(run, 1)
        counts[name] = max(1, round(ROUND_SECONDS / once))
    least = dict.fromkeys(runs, math.inf)
    for _ in range(ROUNDS):
        for name, run in runs.items():
            time.sleep(REST_SECONDS)
            run()
            least[name] = min(least[name], 1000 * seconds_of(run, counts[name]) / counts[name])
    return least


def seconds_of(run: Callable[[], object], count: int) -> float:
    started = time.perf_counter()
    for _ in range(count):
        run()
    return time.perf_counter() - started


@contextmanager
def only_direct() -> Iterator[None]:
    def first(module: Any, kind: str) -> Any:
        return (variants_of(module, kind)[0]._replace(is_seldom_best=False),)

    with patch.object(space, "variants_of", first):
        yield


def best_of(
    function: ModelFunction, target: ResolvedTarget, trials: int, seconds: float, place: Path
) -> tuple[Any, str]:
    """The fastest candidate's module and its form; the default schedule is one only where vectors
    of channels are in the space."""
    place.mkdir()
    search = TaskSearch(function.workload, target.target, seed=1, prior=prior_of("llvm"))
    best, fastest, tried = math.inf, None, 0
    ends = time.monotonic() + seconds
    while tried < trials and time.monotonic() < ends:
        candidates = search.propose(BATCH, ()).candidates
        results = [measured(candidate, best, place, target) for candidate in candidates]
        tried += sum(candidate.origin != "default" for candidate in candidates)
        for candidate, result in zip(candidates, results, strict=True):
            if (
                (candidate.schedule != DEFAULT or has_vectors(search))
                and result.status == "ok"
                and result.median_ms < best
            ):
                best, fastest = result.median_ms, candidate
        search.learn(results)
        if not candidates:
            break
    assert fastest is not None, f"nothing of {function.name} ran"
    return tvm.ir.load_json(fastest.module), form_of(fastest, search)


def has_vectors(search: TaskSearch) -> bool:
    return any(t.variant.name == GROUP_VECTORS for t in search.space.templates.values())


def form_of(candidate: Candidate, search: TaskSearch) -> str:
    template = search.space.templates.get(candidate.schedule.template)
    return template.variant.name if template else "default"


def runner(kernel: SingleKernel, case: Case) -> Callable[[], object]:
    image, weights, bias = values(case)
    last = [image.transpose(0, 2, 3, 1), weights.transpose(2, 3, 1, 0), bias.reshape(1, 1, 1, -1)]
    given = [
        tvm.runtime.tensor(np.ascontiguousarray(each)) for each in [*last, np.zeros_like(last[0])]
    ]
    arguments = kernel.arguments(given)
    main = kernel.function["main"]
    return lambda: main(*arguments)


def stock_build(proto: onnx.ModelProto, case: Case, target: ResolvedTarget) -> Callable[[], object]:
    """TVM's own import and build, channels first and without a schedule, in its virtual machine."""
    with target.target:
        module = relax.get_pipeline("zero")(from_onnx(proto))
        executable = relax.build(module, target=target.target)
    main = relax.VirtualMachine(executable, tvm.cpu())["main"]
    image = tvm.runtime.tensor(values(case)[0])
    return lambda: main(image)


def values(case: Case) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    random = np.random.default_rng(1)
    image = random.normal(size=(1, case.channels, case.width, case.width))
    size = (case.channels, case.channels // case.groups, case.window, case.window)
    weights, bias = random.normal(size=size), random.normal(size=case.channels)
    return image.astype("float32"), weights.astype("float32"), bias.astype("float32")


def model(case: Case) -> onnx.ModelProto:
    image, weights, bias = values(case)
    pads = [case.window // 2] * 4
    nodes = [
        helper.make_node("Conv", ["x", "w", "b"], ["c"], group=case.groups, pads=pads),
        helper.make_node("Relu", ["c"], ["y"]),
    ]
    ends = [helper.make_tensor_value_info(n, TensorProto.FLOAT, image.shape) for n in "xy"]
    constants = [numpy_helper.from_array(weights, "w"), numpy_helper.from_array(bias, "b")]
    graph = helper.make_graph(nodes, "grouped", ends[:1], ends[1:], constants)
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)


def onnx_runtime(proto: onnx.ModelProto, case: Case, threads: int) -> Callable[[], object]:
    settings = onnxruntime.SessionOptions()
    settings.intra_op_num_threads = threads
    content = proto.SerializeToString()
    session = onnxruntime.InferenceSession(content, settings, providers=["CPUExecutionProvider"])
    binding = session.io_binding()
    binding.bind_cpu_input("x", values(case)[0])
    binding.bind_output("y", "cpu")
    return lambda: session.run_with_iobinding(binding)


def openvino(proto: onnx.ModelProto, case: Case, threads: int) -> Callable[[], object] | None:
    try:
        from openvino import Core, Tensor  # type: ignore[import-not-found,unused-ignore]  # noqa: PLC0415
    except ImportError:
        return None
    core = Core()
    settings = {"INFERENCE_PRECISION_HINT": "f32", "INFERENCE_NUM_THREADS": threads}
    compiled = core.compile_model(core.read_model(proto.SerializeToString()), "CPU", settings)
    request = compiled.create_infer_request()
    request.set_input_tensor(Tensor(values(case)[0]))
    run: Callable[[], object] = request.infer
    return run


if __name__ == "__main__":
    main()
