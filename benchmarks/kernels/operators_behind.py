"""Finds the kinds of operators in which other people's models lose to ONNX Runtime.

    python -m benchmarks.kernels.operators_behind DIRECTORY [--models magika ...] [--seconds 0]
        [--layout auto] [--again] [--kernels 0] [--save NAME --merge]

Takes the models that init_to_gate.py collects in DIRECTORY, at the sizes that `tunegate init`
guesses. Each is built after so many seconds of tuning (none: default schedules), on one thread, and
runs in turn with ONNX Runtime. A cell is the build's milliseconds of processor time in kernels of
that kind, and ONNX Runtime's. A kernel counts for the heaviest operator in it: `moves` only move
data. ONNX Runtime's profile is of wall time, so its shares are those of its processor time.
`--kernels N` also prints the N longest kernels, and operators, of each model. `--save` and
`--merge` as for real_speed.py.
"""

from __future__ import annotations

import argparse
import statistics
import sys
import time
from collections import defaultdict
from collections.abc import Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import onnx

from benchmarks.kit.collected import guessed, models_in
from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.kernel_threads import use_threads
from benchmarks.kit.our_model import opened_reference, tune
from benchmarks.kit.results import saved_rows
from benchmarks.kit.tables import heading, row
from benchmarks.kit.watched_kernels import WatchedKernels
from tunegate.compiler.build.functions import kernel_nodes
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import TvmArtifact, race_in_turns
from tunegate.compiler.opening import opened_model
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.preparation import prepare
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.onnxruntime.operator_profile import profiled_ms
from tunegate.runtimes.onnxruntime.runtime import open_model_session
from tunegate.system.onnx_scan import nodes_of
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.protocol import ModelFile

ELEMENTWISE, MOVES = "element-wise", "moves"
_OPERATORS = {
    "recurrence": "LSTM GRU RNN Scan Loop",
    "convolution": "Conv ConvTranspose ConvInteger QLinearConv",
    "product": "MatMul Gemm MatMulInteger QLinearMatMul Einsum Attention DynamicQuantizeMatMul",
    "reduction": (
        "Softmax LogSoftmax LayerNormalization InstanceNormalization MaxPool AveragePool"
        " GlobalAveragePool GlobalMaxPool ReduceMean ReduceSum ReduceMax ReduceMin ReduceProd"
        " ReduceL2 ReduceSumSquare ArgMax ArgMin TopK CumSum ScatterElements ScatterND"
    ),
    "rounding": "QuantizeLinear DequantizeLinear DynamicQuantizeLinear",
    MOVES: (
        "Transpose Reshape Flatten Squeeze Unsqueeze Concat Split Slice Gather GatherElements"
        " GatherND Pad Expand Tile Identity DepthToSpace SpaceToDepth Resize Upsample Shape"
        " ReorderInput ReorderOutput"
    ),
}
_KIND = {name: kind for kind, names in _OPERATORS.items() for name in names.split()}
KINDS = ("recurrence", "wide", "1x1", "grouped", "product", "reduction", "rounding")
"""The kinds of operators, the heaviest first; convolutions are wide, of a pixel, or grouped."""
_COLUMNS = (*KINDS, ELEMENTWISE, MOVES)
_PROFILE_SECONDS, _FEWEST, _MOST = 1.5, 10, 200


class Profile(NamedTuple):
    """Milliseconds of processor time of an inference, and of each named part of it."""

    total: float
    parts: Mapping[str, float]


class Compared(NamedTuple):
    """Both profiles of one model, with the kind of each part."""

    ours: Profile
    theirs: Profile
    our_kinds: Mapping[str, str]
    their_kinds: Mapping[str, str]


def main() -> None:
    options = command_line(
        __doc__,
        ("directory", Path),
        models=[""],
        seconds=0.0,
        layout=Choice(("auto", "nhwc", "nchw"), "auto"),
        again=False,
        kernels=0,
    )
    done = {} if options.again else saved_rows()
    load_intrinsics("llvm")
    use_threads(1)
    heading(" | ".join(("model", "of ONNX Runtime's time", "whole", *_COLUMNS)))
    for name, file in models_in(options.directory).items():
        if name in done or (name not in options.models and options.models != [""]):
            continue
        with scratch_folder() as folder:
            try:
                found = compared(file, options, folder)
            except (AssertionError, ModelError, ValueError) as error:
                print(f"{name}: {str(error)[:200]}", file=sys.stderr, flush=True)
                continue
        show(name, found)
        if options.kernels:
            show_longest(found, options.kernels)


def show(name: str, found: Compared) -> None:
    ours, theirs = found.ours, found.theirs
    both = (
        by_kind(profile, kinds)
        for profile, kinds in ((ours, found.our_kinds), (theirs, found.their_kinds))
    )
    mine, its = both
    cells = (
        f"{mine[kind]:.3f} / {its[kind]:.3f}" if mine[kind] or its[kind] else "–"
        for kind in _COLUMNS
    )
    ratio = f"{ours.total / theirs.total:.2f}"
    row(name, ratio, f"{ours.total:.3f} / {theirs.total:.3f}", *cells)


def by_kind(profile: Profile, kinds: Mapping[str, str]) -> Mapping[str, float]:
    found: dict[str, float] = defaultdict(float)
    for part, ms in profile.parts.items():
        found[kinds.get(part, MOVES)] += ms
    return found


def show_longest(found: Compared, most: int) -> None:
    for profile, kinds in ((found.ours, found.our_kinds), (found.theirs, found.their_kinds)):
        for part, ms in sorted(profile.parts.items(), key=lambda each: -each[1])[:most]:
            print(f"    {ms:9.4f} {kinds.get(part, MOVES):12} {part[:100]}", file=sys.stderr)
        print(file=sys.stderr)


def compared(file: Path, options: argparse.Namespace, folder: Path) -> Compared:
    target = TargetConfig(name="cpu", threads=1, layout=options.layout)
    prepared = prepare(file, shapes=guessed(file), into=folder / "fixed", path="m.onnx")
    tuned = tune(prepared.fixed, target, [options.seconds], folder / "ours")
    build = tuned.builds[options.seconds]
    artifact = ArtifactFile.read(build)
    feed = seeded_inputs(artifact.inputs, 1)
    session = opened_reference(prepared.fixed, 1)
    run = TvmArtifact(build, artifact).bound(feed)
    our_ms, their_ms = race_in_turns(run, partial(session.run, None, feed), 1)
    slower = max(our_ms, their_ms, 0.01)
    count = int(min(_MOST, max(_FEWEST, 1000 * _PROFILE_SECONDS / slower)))
    profile = profiled_ms(
        prepared.fixed, feed, count, partial(open_model_session, prepared.fixed, 1)
    )
    scale = their_ms / sum(profile.values())
    model = ModelFile(file=str(prepared.fixed), path="m.onnx", shapes={})
    kernels = kernel_nodes(opened_model(model, target, folder / "opened").module)
    nodes = kinds_of_nodes(prepared.optimized)
    return Compared(
        Profile(our_ms, kernels_ms(build, feed, count)),
        Profile(their_ms, {name: ms * scale for name, ms in profile.items()}),
        KernelKinds(kernels, nodes),
        kinds_of_nodes(prepared.fixed),
    )


def kernels_ms(build: Path, feed: Mapping[str, Any], inferences: int) -> Mapping[str, float]:
    """The lower quartile of each kernel's milliseconds of processor time in an inference."""
    watched = WatchedKernels(build, feed, time.thread_time)
    for _ in range(inferences + 1):
        watched.infer()
    first, *runs = watched.inferences
    return {name: statistics.quantiles(run[name] for run in runs)[0] for name in first}


def kinds_of_nodes(model: Path) -> Mapping[str, str]:
    """The kind of each node, by its name and its outputs."""
    proto = onnx.load(model)
    shapes = {tensor.name: tuple(tensor.dims) for tensor in proto.graph.initializer}
    found: dict[str, str] = {}
    for node in nodes_of(proto):
        kind = _kind(node, shapes)
        found |= dict.fromkeys((node.name, *node.output, f"{node.op_type} {node.output[0]}"), kind)
    return found


def _kind(node: onnx.NodeProto, shapes: Mapping[str, tuple[int, ...]]) -> str:
    kind = _KIND.get(node.op_type, ELEMENTWISE)
    if kind != "convolution":
        return kind
    groups = next((each.i for each in node.attribute if each.name == "group"), 1)
    window = next((each.ints for each in node.attribute if each.name == "kernel_shape"), None)
    sides = window or next((shapes[name][2:] for name in node.input if name in shapes), ())
    return "grouped" if groups > 1 else "1x1" if set(sides) == {1} else "wide"


class KernelKinds(dict[str, str]):
    """The kind of each kernel: that of the heaviest node in it. One without nodes is a step of a
    recurrence if the model has one, else it goes by its name."""

    def __init__(self, kernels: Mapping[str, Iterable[str]], nodes: Mapping[str, str]) -> None:
        order = (*KINDS, ELEMENTWISE, MOVES)
        for kernel, names in kernels.items():
            self[kernel] = min((nodes.get(name, MOVES) for name in names), key=order.index)
        self._between = "recurrence" if "recurrence" in nodes.values() else MOVES

    def get(self, kernel: str, default: object = None) -> Any:
        is_move = kernel.removeprefix("fused_").startswith(("transpose", "reshape"))
        named = "product" if "matmul" in kernel else "wide" if "conv" in kernel else self._between
        return super().get(kernel, MOVES if is_move else named)


if __name__ == "__main__":
    main()
