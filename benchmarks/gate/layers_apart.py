"""Does the margin of the layers that differ find one per cent of a model?

    python -m benchmarks.gate.layers_apart MODEL ... [--runtime onnxruntime] [--launches 40]
    python -m benchmarks.gate.layers_apart squeezenet resnet50 --live 10

Measures a model against a copy of itself as the gate does, by launches of the whole model and by
launches that time the layers of both sides in one process, in turn. The copies are equal, so any
layer may stand for one that differs. Gates are then drawn from these launches, by the rule of
`gate.layers-margin-percent`: 60 s of launches, in which the sides are swapped by chance (which
makes the truth 0) and the layer of the head takes longer by a part of the model's time. The last
rows do the same with the whole model's launches, under a margin as narrow.

With --live whole gates are run instead, so many of each of two heads, in turn. In the slow one a
convolution of 3x3 reads a column of zeros more: of all of them it is the one that costs nearest to
1% of the model. In the equal one the same layer is written otherwise and does the same work.
"""

import math
import random
import shutil
import statistics
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import NamedTuple, TypeVar

import msgspec
import numpy as np
import onnx
from onnx import helper, numpy_helper

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.models import TARGET, saved
from benchmarks.kit.our_model import tune
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.measurements import DifferingLayers, LayersLaunch
from tunegate.config import GateConfig
from tunegate.decide.decision import bounds, decide_cell
from tunegate.decide.margins_beside_latency import layers_change
from tunegate.decide.sequential import affordable_analyses
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.paired_launches import launch_layers, turns_of
from tunegate.ports import BuildJob, ModelJob
from tunegate.runtimes.builder import SavingBuilder
from tunegate.runtimes.registry import installed_runtimes

_Drawn = TypeVar("_Drawn")

SLOWDOWNS = (0.0, 0.005, 0.01, 0.02)
SECONDS = 60.0
_DRAWS = 1000
_LAYERS = 4
_LEAST_SHARE = 0.03
_GATE_PAIRS = 12
_WANTED, _PROBES = 0.01, 3


class Recorded(NamedTuple):
    """The launches of one model against itself: the milliseconds of each layer on either side, and
    the effects of whole launches, with the seconds that one of each takes."""

    layers: list[tuple[dict[str, float], dict[str, float]]]
    layers_seconds: float
    effects: list[float]
    whole_seconds: float


def main() -> None:
    given = command_line(
        __doc__, "models...", runtime="onnxruntime", launches=40, margins="0.5", seed=1, live=0
    )
    if given.live:
        heading(
            "model | differs | share | put in | gates | fail | pass | undecided | seconds, median"
        )
        for name in given.models:
            with scratch_folder() as folder:
                gate_live(name, given.runtime, float(given.margins.split()[0]), given.live, folder)
        return
    titles = " | ".join(f"+{100 * each:g}%" for each in SLOWDOWNS)
    heading(f"model | differs | share | spread | in 60 s | margin | {titles}", words=(0, 1))
    for name in given.models:
        with scratch_folder() as folder:
            recorded = record(built(name, given.runtime, folder), folder, given.launches)
        for margin in map(float, given.margins.split()):
            show(f"{name}, {given.runtime}", recorded, margin, random.Random(given.seed))


def built(name: str, runtime_name: str, folder: Path) -> tuple[Path, Path]:
    """Returns the model as an artifact of a runtime, and a copy of it. A build by TVM has default
    schedules."""
    at = folder / "base"
    if runtime_name == "tvm":
        at = tune(saved(name, folder), TARGET, [0.0], at).builds[0.0]
    else:
        _save(saved(name, folder), runtime_name, folder, at)
    # A library that is opened twice is loaded once: each side has a file of its own.
    shutil.copytree(at, folder / "head")
    return at, folder / "head"


def _save(file: Path, runtime_name: str, folder: Path, at: Path) -> None:
    job = BuildJob(
        model=ModelJob(file=file, path="m.onnx", shapes={}, target=TARGET),
        records={},
        sources={},
        directory=at,
    )
    (runtime,) = (each for each in installed_runtimes().runtimes if each.name == runtime_name)
    builder = SavingBuilder(runtime, folder / "build", seed=1, limit_seconds=600.0)
    (build,) = builder.build([job])
    assert build.error is None, build.error


def gate_live(
    name: str, runtime_name: str, margin_percent: float, gates: int, folder: Path
) -> None:
    """Prints a row for each of the two heads."""
    model = onnx.load(saved(name, folder))

    def built_from(head: onnx.ModelProto, at: str) -> Path:
        onnx.save(head, folder / "head.onnx")
        _save(folder / "head.onnx", runtime_name, folder, folder / at)
        return folder / at

    base = built_from(model, "base")
    bench = FreshProcesses(folder / "bench", 1)
    inference_ms = bench.pair(base, base).launch(_GATE_PAIRS).head_ms
    turns = turns_of(inference_ms)
    heads = {
        each: built_from(_widened(model, each), f"slow{at}")
        for at, each in enumerate(_square_convolutions(model))
    }
    probes = {
        each: [bench.layers(base, at, number=n, turns=turns) for n in range(_PROBES)]
        for each, at in heads.items()
    }
    chosen = min(probes, key=lambda each: abs(_change(probes[each]) - _WANTED))
    share = statistics.median(each.base_ms / each.whole_ms for each in probes[chosen])
    sides = {
        f"{100 * _change(probes[chosen]):+.1f}%": heads[chosen],
        "+0%": built_from(_rewritten(model, chosen), "equal"),
    }
    gate = GateConfig(layers_margin_percent=margin_percent, seconds=SECONDS)
    said: dict[str, list[tuple[str, float]]] = {each: [] for each in sides}
    for _ in range(gates):
        for put_in, at in sides.items():
            began = time.monotonic()
            found = launch_layers(bench, (base, at), gate, 1, inference_ms)
            change = layers_change(found, margin_percent, cells=1)
            decision = "undecided" if change is None else change.decision
            said[put_in].append((decision, time.monotonic() - began))
    for put_in, gated in said.items():
        counts = [[each for each, _ in gated].count(x) for x in ("fail", "pass", "undecided")]
        seconds = statistics.median(each for _, each in gated)
        row(name, chosen, f"{100 * share:.1f}%", put_in, len(gated), *counts, f"{seconds:.0f}")


def _change(launches: Sequence[LayersLaunch]) -> float:
    return statistics.median((each.head_ms - each.base_ms) / each.whole_ms for each in launches)


def _square_convolutions(model: onnx.ModelProto) -> list[str]:
    """Returns the outputs of convolutions of 3x3 whose result is as large as what they read."""
    weights = {each.name for each in model.graph.initializer}
    wanted = {"kernel_shape": [3, 3], "strides": [1, 1], "pads": [1] * 4, "group": 1}
    usual = {"strides": [1, 1], "pads": [0] * 4, "group": 1}
    found = []
    for node in model.graph.node:
        given = {x.name: helper.get_attribute_value(x) for x in node.attribute}
        is_square = all({**usual, **given}.get(key) == value for key, value in wanted.items())
        if node.op_type == "Conv" and is_square and node.input[1] in weights:
            found.append(node.output[0])
    return found


def _widened(model: onnx.ModelProto, output: str) -> onnx.ModelProto:
    """Returns the model with a column of zeros more in the kernel of this convolution."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    node = _set(found, output, kernel_shape=[3, 4], pads=[1, 1, 1, 2])
    (weight,) = (each for each in found.graph.initializer if each.name == node.input[1])
    values = numpy_helper.to_array(weight)
    wider = np.concatenate([values, np.zeros_like(values[..., :1])], -1)
    weight.CopyFrom(numpy_helper.from_array(wider, weight.name))
    return found


def _rewritten(model: onnx.ModelProto, output: str) -> onnx.ModelProto:
    """Returns the model with the padding of this convolution by its other name."""
    found = onnx.ModelProto()
    found.CopyFrom(model)
    _set(found, output, pads=None, auto_pad="SAME_UPPER")
    return found


def _set(model: onnx.ModelProto, output: str, **attributes: object) -> onnx.NodeProto:
    node: onnx.NodeProto = next(each for each in model.graph.node if output in each.output)
    kept = [each for each in node.attribute if each.name not in attributes]
    del node.attribute[:]
    node.attribute.extend(kept)
    node.attribute.extend(
        helper.make_attribute(name, value)
        for name, value in attributes.items()
        if value is not None
    )
    return node


def record(sides: tuple[Path, Path], folder: Path, launches: int) -> Recorded:
    """Returns launches of both kinds, in turn: what else the machine does befalls both."""
    bench = FreshProcesses(folder / "bench", 1)
    pair = bench.pair(*sides)
    turns = turns_of(pair.launch(_GATE_PAIRS).head_ms)
    layers, effects, spent, whole_spent = [], [], [], []
    for number in range(launches):
        began = time.monotonic()
        layers.append(bench.profiled_both(*sides, number, turns).milliseconds)
        spent.append(time.monotonic() - began)
        began = time.monotonic()
        effects.append(pair.launch(_GATE_PAIRS).effect)
        whole_spent.append(time.monotonic() - began)
    return Recorded(layers, statistics.fmean(spent), effects, statistics.fmean(whole_spent))


def show(name: str, recorded: Recorded, margin_percent: float, rng: random.Random) -> None:
    base_ms = {
        layer: statistics.median(base[layer] for base, _ in recorded.layers)
        for layer in recorded.layers[0][0]
    }
    shares = {layer: ms / sum(base_ms.values()) for layer, ms in base_ms.items()}
    largest = sorted(shares, key=lambda layer: -shares[layer])
    shown = [layer for layer in largest if shares[layer] >= _LEAST_SHARE]
    chosen = [[layer] for layer in shown[:: max(1, len(shown) // _LAYERS)][:_LAYERS]]
    for together in [*chosen, shown[: len(shown) // 2]]:
        launches = [_launch(*each, together) for each in recorded.layers]
        swapped = [_launch(head, base, together) for base, head in recorded.layers]
        effects = [math.log1p((x.head_ms - x.base_ms) / x.whole_ms) for x in launches]
        what = together[0] if len(together) == 1 else f"{len(together)} layers"
        share = sum(shares[layer] for layer in together)
        either = [*launches, *swapped]
        verdicts = _drawn(either, recorded.layers_seconds, margin_percent, rng)
        _row(name, what, share, effects, recorded.layers_seconds, margin_percent, verdicts)
    by_whole = _whole_drawn(recorded, margin_percent, rng)
    seconds = recorded.whole_seconds
    _row(name, "(the whole model)", 1.0, recorded.effects, seconds, margin_percent, by_whole)


def _row(
    name: str,
    what: str,
    share: float,
    effects: Sequence[float],
    seconds: float,
    margin_percent: float,
    verdicts: Sequence[str],
) -> None:
    spread = f"{100 * statistics.stdev(effects):.2f}%"
    margin = f"{margin_percent:g}%"
    row(name, what, f"{100 * share:.0f}%", spread, int(SECONDS / seconds), margin, *verdicts)


def _launch(
    base: Mapping[str, float], head: Mapping[str, float], layers: Sequence[str]
) -> LayersLaunch:
    return LayersLaunch(
        whole_ms=sum(base.values()),
        base_ms=sum(base[layer] for layer in layers),
        head_ms=sum(head[layer] for layer in layers),
        seconds=0.0,
    )


def _drawn(
    launches: Sequence[LayersLaunch], seconds: float, margin_percent: float, rng: random.Random
) -> list[str]:
    """Returns the share of gates that fail and that pass, at each slowdown."""
    analyses = affordable_analyses(SECONDS, seconds)

    def decided(drawn: Sequence[LayersLaunch]) -> str:
        found = layers_change(
            DifferingLayers(launches=tuple(drawn), analyses=analyses), margin_percent, cells=1
        )
        return "undecided" if found is None else found.decision

    def slowed(slowdown: float) -> LayersLaunch:
        each = rng.choice(launches)
        slower_ms = each.head_ms + slowdown * each.whole_ms
        return msgspec.structs.replace(each, head_ms=slower_ms)

    return [_shares(analyses, partial(slowed, at), decided) for at in SLOWDOWNS]


def _whole_drawn(recorded: Recorded, margin_percent: float, rng: random.Random) -> list[str]:
    """Returns the same by launches of the whole model."""
    analyses = affordable_analyses(SECONDS, recorded.whole_seconds)
    margin = math.log1p(margin_percent / 100)

    def decided(drawn: Sequence[float]) -> str:
        return decide_cell(bounds(drawn, analyses=len(analyses), cells=1, fail_error=0.01), margin)

    def slowed(slowdown: float) -> float:
        return rng.choice([-1, 1]) * rng.choice(recorded.effects) + math.log1p(slowdown)

    return [_shares(analyses, partial(slowed, at), decided) for at in SLOWDOWNS]


def _shares(
    analyses: Sequence[int], draw: Callable[[], _Drawn], decided: Callable[[Sequence[_Drawn]], str]
) -> str:
    verdicts = [_gate(analyses, draw, decided) for _ in range(_DRAWS)]
    failed, passed = (100 * verdicts.count(each) / _DRAWS for each in ("fail", "pass"))
    return f"{failed:.1f}% ({passed:.0f}% pass)"


def _gate(
    analyses: Sequence[int], draw: Callable[[], _Drawn], decided: Callable[[Sequence[_Drawn]], str]
) -> str:
    """Returns the verdict of one gate: that of the first analysis which decides."""
    drawn = [draw() for _ in range(analyses[-1])]
    found = (decided(drawn[:size]) for size in analyses)
    return next((each for each in found if each != "undecided"), "undecided")


if __name__ == "__main__":
    main()
