"""The job of one lease of a GPU: what is worth most comes first, and each step has a limit.

Before and after each step the figures are written to <out>/gpu.json, and after each the logs,
verdicts, outcomes and other artifacts to <out>/steps.tar.gz: a lease that is cut short still leaves
what was measured until then, and returns few files. A step whose limit does not fit into the
seconds that are left gets these, and none begins with less than thirty. Whatever a step does, the
next one begins. Ends with 1 where one did not end as it should. `--spent` of the `--seconds` are
over when it begins, and steps have `--patience` times their limits.

    benchmarks/gpu.sh [FOLDER WITH part-00, part-01, ...]     # on a machine without a network

Where PyTorch is, the models are those of `gpu_models.py`, an encoder and ResNet-50, and PyTorch's
times are measured first. `--every` takes all eight, and changes the weights of one after the other:
each has its own step, so that time that is too short costs the last ones only. A table compares
both, and `gpu_figures.py` makes docs/benchmarks/gpu.md of what came back. `--more` says how many
percent of work the two slower heads have more, `--small` has `tiles` and `whole` compute as little
as they can: a stand-in for a device is slow.
"""

from __future__ import annotations

import importlib.util
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import onnx
import onnx.shape_inference
import onnxruntime
import yaml
from onnx import helper, numpy_helper

from benchmarks import gpu_models
from benchmarks.kit import results
from benchmarks.kit.command import Many, command_line
from benchmarks.kit.markdown_tables import tables
from benchmarks.kit.model_changes import new_weights
from benchmarks.kit.tables import heading, row

_WHOLE_MODEL = Path(__file__).resolve().parents[1] / "plugin" / "extras" / "whole_model"
_FEW_SECONDS = 30
_GRACE_SECONDS = 20
_KILLED_SECONDS = 10
_MOST_BYTES = 4 << 20
"""Of an artifact that is kept."""
_SECONDS = "{seconds}"
"""In a command: what it may take to end by itself."""
_TO_END_SECONDS = 40
_PRODUCTS = {"MatMul", "Gemm", "Conv"}
_RECURRENT = {"LSTM", "GRU", "RNN"}
_MORE_PERCENT = [8.0, 30.0]
_RUN_MINUTES = 0.5
"""Of tuning, for each step but `warm`."""
_CONFIG = """\
models:
  - path: models/*.onnx
targets:
  - name: gpu
    kind: cuda
    arch: native
    device-wait-seconds: 60
    usd-per-hour: 4
cache:
  url: cache
"""
_TUNEGATE = (sys.executable, "-P", "-m", "tunegate")
_BENCHMARK = (sys.executable, "-m")
_TILES = ("benchmarks.kernels.tensor_cores",)
_SMALL_TILES = (*_TILES, "--rounds", "1", "--number", "1", "--cases", "64 x 64 x 64")
_WHOLE = "transformer --launches 2 --batches 1"
_SMALL_WHOLE = f"{_WHOLE} --sequence 8 --width 32"
_TESTS = ("pytest", "-q", "--noconftest", "-c", "/dev/null", "--rootdir", ".")
"""Rules for all tests need more packages than those for a device."""
_FIRST_PICKS = f"transformer-128 --seconds {_SECONDS} --per-task 64 --tasks 4"
_LIVE = (
    f"--gpu transformer-128 --put-in 0 0 1 --margin 0.5 --rare 0 --seconds 20 --lasting {_SECONDS}"
)
"""Of three gates two have a build against itself, and one has a head that is 1% slower."""


class Step(NamedTuple):
    """A command, and the code that it ends with where all is right."""

    name: str
    command: tuple[str, ...]
    limit_seconds: float
    expected: int = 0
    prepare: Callable[[], None] | None = None

    @property
    def is_of_job(self) -> bool:
        """True where it runs in the repository of the job, not in this checkout."""
        return self.command[: len(_TUNEGATE)] == _TUNEGATE

    def variables(self) -> dict[str, str]:
        """The environment of its process. A model as one launch is an extra: the job does without
        it, as users do."""
        if self.is_of_job:
            return dict(os.environ)
        searched = (os.environ.get("PYTHONPATH", ""), str(_WHOLE_MODEL))
        return {**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, searched))}


def steps(
    repository: Path,
    minutes: float,
    changed: Sequence[Path],
    refused: Sequence[Path] = (),
    more_percent: Sequence[float] = _MORE_PERCENT,
    *,
    sizes: Mapping[str, int] | None = None,
    run_minutes: float = _RUN_MINUTES,
    is_small: bool = False,
) -> list[Step]:
    """In the order of their worth. New weights come to each that is `changed`, in a step of its
    own, more work to the first one. Those that are `refused` by TVM are not in the repository
    before their own step: each run would end with their reason."""
    run = (*_TUNEGATE, "run", "-v", "--base", "HEAD~1", "--minutes", str(run_minutes))
    little, much = (
        lambda percent=percent: _commit(
            repository, changed[:1], lambda model: more_work(model, percent / 100, sizes)
        )
        for percent in more_percent
    )
    return [
        Step("doctor", (*_TUNEGATE, "doctor", "-v"), 120),
        Step("warm", (*_TUNEGATE, "warm", "-v", "--minutes", str(minutes)), 280),
        *(
            Step(
                *(f"weights-{file.stem}" if number else "weights", run, 170),
                prepare=partial(_commit, repository, [file], new_weights),
            )
            for number, file in enumerate(changed)
        ),
        Step("slower", run, 170, 1, prepare=little),
        Step("faster", run, 120, prepare=lambda: _git(repository, "revert", "--no-edit", "HEAD")),
        *(
            [
                Step(
                    *("refused", run, 60, 0 if _has_other_runtime() else 2),
                    prepare=lambda: _commit_new(repository, refused),
                )
            ]
            if refused
            else []
        ),
        # float16 and TF32 on tensor cores: what they make of the models, and of single kernels by
        # each tile.
        Step("half", run, 170, prepare=lambda: _allow_error(repository, changed[:1])),
        Step("tiles", (*_BENCHMARK, *(_SMALL_TILES if is_small else _TILES)), 90),
        # What is found first, by what many more find: the goal is 0.9 of 64.
        Step("first", (*_BENCHMARK, "benchmarks.tuning.gpu_tuning", *_FIRST_PICKS.split()), 230),
        Step("live", (*_BENCHMARK, "benchmarks.gate.live_gates", *_LIVE.split()), 200),
        Step("much_slower", run, 170, 1, prepare=much),
        Step("tests", (*_BENCHMARK, *_TESTS, "tests/gpu"), 300),
        *(
            Step(name, (*_BENCHMARK, f"benchmarks.{module}", *arguments.split()), limit)
            for name, module, arguments, limit in (
                ("gate", "gate.gpu_launches", "transformer-128 --launches 3", 150),
                ("whole", "gate.gpu_launches", _SMALL_WHOLE if is_small else _WHOLE, 150),
            )
        ),
    ]


def _has_other_runtime() -> bool:
    return "CUDAExecutionProvider" in onnxruntime.get_available_providers()


def more_work(
    model: onnx.ModelProto, share: float, sizes: Mapping[str, int] | None = None
) -> onnx.ModelProto:
    """The model with about so much of the multiplications of its weights again: products run once
    more or several times, on other weights, and the mean of all goes on, so that no optimizer can
    leave them out. Of a part the largest products that fit come first, at least the smallest.
    Recurrent layers are part of all the work, and are not repeated. `sizes` are those of dynamic
    dimensions, by name."""
    changed = onnx.ModelProto()
    changed.CopyFrom(model)
    graph = changed.graph
    weights = {tensor.name: tensor for tensor in graph.initializer}
    costs = _multiplications(model, weights, sizes or {})
    products = {node.output[0] for node in graph.node if node.op_type in _PRODUCTS}
    repeatable = {name: cost for name, cost in costs.items() if name in products}
    times = _repetitions(repeatable, share, sum(costs.values()) - sum(repeatable.values()))
    nodes = []
    for node in graph.node:
        nodes.append(node)
        output = node.output[0]
        if not times.get(output):
            continue
        weight = numpy_helper.to_array(weights[node.input[1]])
        node.output[0] = f"{output}_first"
        computed = [f"{output}_first"]
        for number in range(times[output]):
            again = onnx.NodeProto()
            again.CopyFrom(node)
            mark = f"again{number or ''}"
            again.name, again.input[1] = f"{node.name}_{mark}", f"{output}_weight_{mark}"
            again.output[0] = f"{output}_{mark}"
            values = (weight * (0.999 - 0.001 * number)).astype(weight.dtype)
            graph.initializer.append(numpy_helper.from_array(values, again.input[1]))
            computed.append(again.output[0])
            nodes.append(again)
        nodes.append(helper.make_node("Mean", computed, [output], name=f"{node.name}_mean"))
    del graph.node[:]
    graph.node.extend(nodes)
    return changed


def _multiplications(
    model: onnx.ModelProto, weights: Mapping[str, onnx.TensorProto], given: Mapping[str, int]
) -> dict[str, int]:
    """Those of each product of weights, and of each recurrent layer, by its first output. A size
    that is not known counts as one."""
    sized = onnx.ModelProto()
    sized.CopyFrom(model)
    for value in sized.graph.input:
        for size in value.type.tensor_type.shape.dim:
            if size.dim_param in given:
                size.dim_value = given[size.dim_param]
    inferred = onnx.shape_inference.infer_shapes(sized).graph
    sizes = {
        value.name: [max(1, size.dim_value) for size in value.type.tensor_type.shape.dim]
        for value in (*inferred.value_info, *inferred.output)
    }
    found = {}
    for node in model.graph.node:
        if node.op_type in _PRODUCTS and len(node.input) > 1 and node.input[1] in weights:
            shape = sizes.get(node.output[0]) or [1]
            channels = shape[1] if node.op_type == "Conv" and len(shape) > 1 else shape[-1]
            weight = int(np.prod(weights[node.input[1]].dims))
            found[node.output[0]] = int(np.prod(shape)) * weight // channels
        if node.op_type in _RECURRENT:
            each = sum(int(np.prod(weights[name].dims)) for name in node.input if name in weights)
            steps, _, batch, _ = sizes.get(node.output[0]) or [1, 1, 1, 1]
            found[node.output[0]] = steps * batch * each
    return found


def _repetitions(costs: Mapping[str, int], share: float, others: int = 0) -> dict[str, int]:
    """Returns how often to repeat each, so that the repetitions cost this share of the sum of all.
    `others` are costs of what is not repeated. Where few can be, they are repeated more than
    once."""
    times = dict.fromkeys(costs, int(share))
    wanted = left = share * (sum(costs.values()) + others) - int(share) * sum(costs.values())
    is_open = True
    while is_open:
        for name in sorted(costs, key=lambda name: -costs[name]):
            if 0 < costs[name] <= left:
                times[name] += 1
                left -= costs[name]
        is_open = left > wanted / 4 and any(left / 20 <= cost <= left for cost in costs.values())
    if costs and not any(times.values()):
        times[min(costs, key=lambda name: costs[name])] = 1
    return times


def config_of(files: Sequence[Path]) -> str:
    """The configuration of the job. A size that no model has would be refused."""
    sizes = (gpu_models.SIZES.get(each.stem, "") for each in files)
    return _CONFIG + "".join(f"dims: {{{size}}}\n" for size in sizes if size)


def prepared_repository(at: Path, models: Sequence[Path], config: str) -> Path:
    """A repository with these models and one commit."""
    (at / "models").mkdir(parents=True)
    for model in models:
        shutil.copyfile(model, at / "models" / model.name)
    (at / "tunegate.yaml").write_text(config)
    (at / ".gitignore").write_text("cache/\n.tunegate/\n")
    _git(at, "init", "-q", "-b", "main")
    _git(at, "add", "--all")
    _git(at, "commit", "-q", "-m", "models")
    return at


def carried_out(step: Step, at: Path, out: Path, limit_seconds: float) -> dict[str, Any]:
    """Runs the step, and returns how it ended; its log and artifacts are under `out`. A step out of
    time is interrupted, as a user would, so that it writes what it has. A step that cannot begin is
    reported like one that fails."""
    began, written_before = time.monotonic(), time.time()
    log = out / f"{step.name}.log"
    code: int | None = None
    try:
        log.write_text("")
        if step.prepare is not None:
            step.prepare()
        code = _end_code(step, at, log, limit_seconds)
    except Exception as error:  # noqa: BLE001 -- the next step is worth as much
        with log.open("a") as written:
            written.write(f"\n{type(error).__name__}: {error}\n")
    text = log.read_text(errors="replace") if log.is_file() else ""
    return {
        "step": step.name,
        "exit_code": code,
        "expected": step.expected,
        "is_as_expected": code == step.expected,
        "seconds": round(time.monotonic() - began, 1),
        "limit_seconds": round(limit_seconds),
        "last_line": (text.strip().splitlines() or [""])[-1][:200],
        "tables": [msgspec.to_builtins(each) for each in tables(text)],
        "kept": _keep_artifacts(step, at, out, written_before) if step.is_of_job else [],
    }


def _end_code(step: Step, at: Path, log: Path, limit_seconds: float) -> int | None:
    """The exit code of the command, None where it was out of time."""
    own = str(max(_FEW_SECONDS, round(limit_seconds) - _TO_END_SECONDS))
    command = [each.replace(_SECONDS, own) for each in step.command]
    with log.open("a") as written:
        process = subprocess.Popen(
            command,
            cwd=at,
            env=step.variables(),
            stdout=written,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
        try:
            return process.wait(limit_seconds)
        except subprocess.TimeoutExpired:
            _end(process)
            return None


def _end(process: subprocess.Popen[bytes]) -> None:
    """Ends it. A process that the driver holds cannot be killed, and is left behind."""
    for number, seconds in ((signal.SIGINT, _GRACE_SECONDS), (signal.SIGKILL, _KILLED_SECONDS)):
        with suppress(ProcessLookupError):
            os.killpg(process.pid, number)
        with suppress(subprocess.TimeoutExpired):
            process.wait(seconds)
            return


def _keep_artifacts(step: Step, at: Path, out: Path, written_after: float) -> list[str]:
    """Copies what this step has written to `.tunegate`: what an earlier one left is not its own."""
    kept = []
    for file in sorted((at / ".tunegate").glob("*.json")):
        with suppress(OSError):
            state = file.stat()
            if state.st_mtime >= written_after and state.st_size <= _MOST_BYTES:
                shutil.copyfile(file, out / f"{step.name}.{file.name}")
                kept.append(f"{step.name}.{file.name}")
    return kept


def _commit(
    repository: Path, files: Sequence[Path], change: Callable[[onnx.ModelProto], onnx.ModelProto]
) -> None:
    for file in files:
        onnx.save(change(onnx.load(file)), file)
    _git(repository, "commit", "-qam", "change")


def _allow_error(repository: Path, files: Sequence[Path]) -> None:
    """Commits a budget of accuracy, and then new weights: the budget of the base counts."""
    config = repository / "tunegate.yaml"
    glob = "  - path: models/*.onnx\n"
    config.write_text(config.read_text().replace(glob, f"{glob}    accuracy: {{max-error: 5}}\n"))
    _git(repository, "commit", "-qam", "a budget of accuracy")
    _commit(repository, files, new_weights)


def _commit_new(repository: Path, files: Sequence[Path]) -> None:
    """Adds these models, and changes the weights of each."""
    copies = [Path(shutil.copy(file, repository / "models")) for file in files]
    _git(repository, "add", "--all")
    _git(repository, "commit", "-qm", "new models")
    _commit(repository, copies, new_weights)


def _git(at: Path, *arguments: str) -> None:
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.invalid")
    subprocess.run(["git", *identity, *arguments], cwd=at, check=True)


def _write(out: Path, machine: str, done: Sequence[dict[str, Any]]) -> None:
    fresh = out / "gpu.json.fresh"
    fresh.write_text(json.dumps({"machine": machine, "steps": list(done)}, indent=1))
    fresh.replace(out / "gpu.json")


def _bundle(kept: Path, out: Path) -> None:
    """Packs what was kept of the steps into one file of the results."""
    fresh = out / "steps.tar.gz.fresh"
    with tarfile.open(fresh, "w:gz") as packed:
        packed.add(kept, ".")
    fresh.replace(out / "steps.tar.gz")


class _Job:
    """The steps that main has run so far, and the time left for others. `kept` has the logs and
    artifacts."""

    def __init__(
        self, out: Path, kept: Path, seconds: float, *, spent: float, patience: float
    ) -> None:
        self._out, self.kept, self._seconds, self._patience = out, kept, seconds, patience
        self._began = time.monotonic() - spent
        self._machine = ", ".join(filter(None, (os.environ.get("GPU_MACHINE"), results.machine())))
        self.done: list[dict[str, Any]] = []
        _write(self._out, self._machine, self.done)

    def carry_out(self, step: Step, at: Path, unprepared: str = "") -> None:
        left = self._seconds - (time.monotonic() - self._began)
        if unprepared:
            self.done.append({"step": step.name, "is_as_expected": False, "last_line": unprepared})
        elif left < _FEW_SECONDS:
            self.done.append({"step": step.name, "is_left_out": True})
        else:
            _write(self._out, self._machine, [*self.done, {"step": step.name, "is_running": True}])
            limit = min(self._patience * step.limit_seconds, left)
            self.done.append(carried_out(step, at, self.kept, limit))
        _write(self._out, self._machine, self.done)
        _bundle(self.kept, self._out)
        print(f"== {step.name}: {self.done[-1].get('last_line', 'left out')}", flush=True)


def _models(given: Sequence[str], folder: Path, job: _Job, *, has_every: bool) -> list[Path]:
    """The models of the job: those that are given, else PyTorch's, else some of the benchmarks'."""
    if given:
        return [Path(each).resolve() for each in given]
    folder.mkdir(parents=True)
    if importlib.util.find_spec("torch") is not None:
        named = () if has_every else ("--models", *gpu_models.USUAL)
        command = (*_BENCHMARK, "benchmarks.gpu_models", str(folder), *named)
        job.carry_out(Step("peers", (*command, "--seconds", _SECONDS), 180), Path.cwd())
        with suppress(OSError):
            shutil.copyfile(folder / "peers.json", job.kept / "peers.json")
        files = [folder / f"{name}.onnx" for name in gpu_models.MODELS]
        if any(each.is_file() for each in files):
            return [each for each in files if each.is_file()]
    from benchmarks.kit.models import saved  # noqa: PLC0415 -- other imports than its own models

    return [saved(name, folder) for name in ("transformer", "resnet50")]


COMPARED = "model | PyTorch, ms | tunegate, ms | tunegate / PyTorch | verdict"
IN_FLOAT16 = "model | candidate | ms | PyTorch in float16, ms | error, %"


def compared(out: Path, names: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Rows for these models: the best of PyTorch in float32, what ships by tunegate, tunegate /
    PyTorch, and the verdict on new weights, "none" where no step came so far."""
    peers = _read_json(out / "peers.json")
    judged = {
        Path(finding["model"]).stem: finding
        for verdict in (*out.glob("weights*.verdict.json"), out / "refused.verdict.json")
        for finding in _read_json(verdict).get("findings", ())
    }
    for name in names:
        finding = judged.get(name, {})
        times = [ms for way, ms in peers.get(name, {}).items() if way in gpu_models.FLOAT32]
        best, own = min(times, default=None), finding.get("head_ms")
        ratio = f"{own / best:.2f}" if best and own else ""
        shown = ("" if each is None else f"{each:.3f}" for each in (best, own))
        yield (name, *shown, ratio, finding.get("status", "none"))


def in_float16(out: Path) -> Iterator[tuple[str, ...]]:
    """Rows for each candidate that `half` has timed: model, candidate, milliseconds, those of
    PyTorch in float16, and the error in percent."""
    peers = _read_json(out / "peers.json")
    for finding in _read_json(out / "half.verdict.json").get("findings", ()):
        name = Path(finding["model"]).stem
        half = peers.get(name, {}).get("float16")
        for each in finding.get("runtimes", ()):
            error = (each["error"] or {}).get("center")
            shown = ("" if n is None else f"{n:.3f}" for n in (each["ms"], half, error))
            yield (name, each["candidate"], *shown)


def _read_json(file: Path) -> dict[str, Any]:
    try:
        found: dict[str, Any] = json.loads(file.read_text())
    except (OSError, ValueError):
        return {}
    return found


def main() -> int:
    options = command_line(
        __doc__,
        out=".gpu-results",
        seconds=560.0,
        spent=0.0,
        patience=1.0,
        minutes=2.0,
        run_minutes=_RUN_MINUTES,
        models=Many(str, is_required=False),
        config="",
        every=False,
        small=False,
        more=_MORE_PERCENT,
        steps=Many(str, is_required=False),
    )
    checkout, out = Path.cwd(), Path(options.out).resolve()
    out.mkdir(parents=True, exist_ok=True)
    # Not under `out`, which has to come back: models and builds are large.
    scratch = Path(tempfile.mkdtemp(prefix="gpu-job-"))
    kept = scratch / "steps"
    kept.mkdir()
    job = _Job(out, kept, options.seconds, spent=options.spent, patience=options.patience)
    repository, changed, refused, unprepared = scratch / "job", list[Path](), list[Path](), ""
    sizes: dict[str, int] = {}
    try:
        files = _models(options.models or (), scratch / "models", job, has_every=options.every)
        refused = [each for each in files if each.stem in gpu_models.REFUSED]
        files = [each for each in files if each not in refused]
        config = Path(options.config).read_text() if options.config else config_of(files)
        sizes = yaml.safe_load(config).get("dims", {})
        prepared_repository(repository, files, config)
        changed = [repository / "models" / each.name for each in files]
    except Exception as error:  # noqa: BLE001 -- some steps need no repository
        unprepared = f"the job has no repository: {type(error).__name__}: {error}"
    changed = changed if options.every else changed[:1]
    of_job = steps(
        *(repository, options.minutes, changed, refused, options.more),
        sizes=sizes,
        run_minutes=options.run_minutes,
        is_small=options.small,
    )
    for step in of_job:
        if not options.steps or step.name.partition("-")[0] in options.steps:
            is_of_job = step.is_of_job
            job.carry_out(
                step, repository if is_of_job else checkout, unprepared if is_of_job else ""
            )
    show_tables(kept, [file.stem for file in (*changed, *refused)])
    shutil.rmtree(scratch, ignore_errors=True)
    return int(any(not each.get("is_as_expected", True) for each in job.done))


def show_tables(out: Path, models: Sequence[str]) -> None:
    if [*out.glob("weights*.verdict.json")]:
        heading(COMPARED, words=(0, 4))
        for each in compared(out, models):
            row(*each)
    if rows := list(in_float16(out)):
        heading(IN_FLOAT16, words=(0, 1))
        for each in rows:
            row(*each)


if __name__ == "__main__":
    sys.exit(main())
