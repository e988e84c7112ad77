"""Why a model is compiled in part or not: each piece under TVM and under ONNX Runtime.

    python -m benchmarks.real_models.hybrid_pieces DIRECTORY [--models magika ...] [--seconds 60]
        [--threads 1] [--measure-only]

Takes the models that init_to_gate.py collects in DIRECTORY, at the sizes that `tunegate init`
guesses. Tunes each for so many seconds, keeps the records beside the model, cuts it as the product
does, and times each piece under both, on what goes into it in the model. `--measure-only` tunes
nothing, and takes the kept records: for a machine that is quiet for minutes. With one thread times
are of the processor. A crossing costs what the model takes longer in pieces under ONNX Runtime
than whole under ONNX Runtime, for each cut.
"""

from __future__ import annotations

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import onnx

from benchmarks.kit.collected import collected, guessed
from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.our_model import Records, records
from benchmarks.kit.tables import heading, row
from tunegate.compiler.build.build_model import build_model
from tunegate.compiler.forms import LIBRARY
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.loader import raced
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.runtime import use_threads
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.models.inputs.drawn_inputs import drawn_inputs
from tunegate.models.preparation import prepare
from tunegate.models.reference.part_session import opened_part
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.tune.compiler_protocol import BuildModel
from tunegate.tune.protocol import ModelFile
from tunegate_hybrid.assembly import Assembly, CompiledPart
from tunegate_hybrid.compiler import PartsCompiler
from tunegate_hybrid.open_parts import SplitModel
from tunegate_hybrid.opening import cut_open, opened_in_parts
from tunegate_hybrid.partition import ModelPart
from tunegate_hybrid.runtime import RUNTIME
from tunegate_hybrid.winners import Winners

PROGRAMS_OF_PARTS = PROGRAMS._replace(searcher=RUNTIME.searcher)
NAMED = 2
"""The operators that a piece is named by: those that it has most of."""
HELPERS = {"Constant", "Identity", "Reshape", "Unsqueeze", "Squeeze", "Cast", "Shape", "Flatten"}


class Piece(NamedTuple):
    """A run of nodes that is compiled as one; milliseconds under each."""

    operators: str
    work: float
    compiled_ms: float
    other_ms: float


class Cut(NamedTuple):
    """A model: the pieces, and what is left of it; `cuts_ms` is what it takes longer for the
    cuts."""

    pieces: tuple[Piece, ...]
    refused_ms: float
    whole_ms: float
    cuts: int
    cuts_ms: float


def main() -> None:
    options = command_line(
        __doc__,
        ("directory", Path),
        models=[""],
        seconds=60.0,
        threads=1,
        measure_only=False,
    )
    models = collected(options.directory)
    names = [name for name in models if name in options.models or options.models == [""]]
    found = {}
    for name in names:
        with scratch_folder() as folder:
            found[name] = of_model(models[name], options, folder)
    show(found)


def of_model(file: Path, options: argparse.Namespace, folder: Path) -> Cut | str:
    """The model in pieces, or why it has none."""
    target = TargetConfig(name="cpu", threads=options.threads)
    kept = file.parent / f"records-{options.threads}.json"
    try:
        model = prepare(file, shapes=guessed(file), into=folder / "fixed", path="m.onnx").fixed
        if not options.measure_only:
            kept.write_bytes(
                msgspec.json.encode(in_parts_records(model, target, options.seconds, folder))
            )
        known = msgspec.json.decode(kept.read_bytes(), type=Records) if kept.exists() else {}
        return Cutting(model, target, known, folder).measured()
    except (ModelError, ValueError) as error:
        return str(error)


def parts_compiler(folder: Path, target: TargetConfig) -> PartsCompiler:
    """Returns a compiler that takes models on this target in parts, too."""
    whole = MetaScheduleCompiler(folder / "whole", seed=1)
    return PartsCompiler(whole, {target.name}, folder / "parts", seed=1, limit_seconds=900.0)


def in_parts_records(model: Path, target: TargetConfig, seconds: float, folder: Path) -> Records:
    """Returns the records of a model after so many seconds, of its parts where it has some."""
    compiler = parts_compiler(folder / "compiler", target)
    return records(compiler, model, target, seconds, folder, programs=PROGRAMS_OF_PARTS)


class Cutting:
    """A model opened and cut in this process."""

    def __init__(self, model: Path, target: TargetConfig, known: Records, folder: Path) -> None:
        load_intrinsics("llvm")
        self._threads = target.threads or 1
        use_threads(self._threads)
        self._file = ModelFile(file=str(model), path="m.onnx", shapes={})
        self._target, self._known, self._folder = target, known, folder
        opened = opened_in_parts(self._file, target, folder / "opened")
        if isinstance(opened, OpenModel):
            opened = cut_open(opened, self._file, target, folder / "opened")
        self._split: SplitModel = opened
        self._assembly = Assembly(opened, self._linked, folder / "parts", self._threads)
        tensors = drawn_inputs(opened.prepared, self._request("").inputs, "m.onnx")
        self._feed = seeded_inputs(tensors, 1)

    def measured(self) -> Cut:
        split, assembly = self._split, self._assembly
        cutting = Winners(split, assembly, self._feed, self._threads, is_tuned=True)
        parts = [piece for part in split.parts for piece in self._cut(part, cutting)]
        program = assembly.program(parts, split.graph.outputs, self._folder / "cut")
        feeds = [feed for _, feed in program.feeds(self._feed)]
        timed = {part: self._times(part, feed) for part, feed in zip(parts, feeds, strict=True)}
        others = [msgspec.structs.replace(part, is_compiled=False) for part in parts]
        whole = opened_part(split.prepared.original, self._threads)
        cut = assembly.program(others, split.graph.outputs, self._folder / "theirs")
        whole_ms, cut_ms = raced(
            lambda: whole.run(None, dict(self._feed)), cut.bound(self._feed), self._threads
        )
        return Cut(
            pieces=tuple(self._piece(p, *timed[p]) for p in parts if p.is_compiled),
            refused_ms=sum(timed[part][1] for part in parts if not part.is_compiled),
            whole_ms=whole_ms,
            cuts=len(parts) - 1,
            cuts_ms=cut_ms - whole_ms,
        )

    def _cut(self, part: ModelPart, cutting: Winners) -> Sequence[ModelPart]:
        """The pieces of a part that the compiler takes; itself where it is too small to be cut."""
        return (cutting._cut(part) if part in self._split.opened else []) or [part]

    def _times(self, part: ModelPart, feed: Mapping[str, Any]) -> tuple[float, float]:
        """The milliseconds under each; what is not compiled never wins."""
        other = msgspec.structs.replace(part, is_compiled=False)
        at = self._folder / f"timed-{part.nodes[0]}-{len(part.nodes)}"
        theirs = self._assembly.program([other], part.outputs, at / "theirs").bound(feed)
        if not part.is_compiled:
            return float("inf"), raced(theirs, theirs, self._threads)[0]
        ours = self._assembly.program([part], part.outputs, at / "ours").bound(feed)
        return raced(ours, theirs, self._threads)

    def _piece(self, part: ModelPart, ours: float, theirs: float) -> Piece:
        proto = onnx.load(self._split.prepared.optimized, load_external_data=False)
        kinds = Counter(proto.graph.node[place].op_type for place in part.nodes)
        named = [f"{n} {kind}" for kind, n in kinds.most_common() if kind not in HELPERS]
        work = sum(self._split.graph.nodes[place].work for place in part.nodes)
        return Piece(", ".join(named[:NAMED]) or "copies", work, ours, theirs)

    def _request(self, directory: str) -> BuildModel:
        return BuildModel(
            model=self._file,
            target=self._target,
            records=self._known,
            sources=dict.fromkeys(self._known, "search"),
            directory=directory,
            scratch=f"{directory}/scratch",
            seed=1,
        )

    def _linked(self, opened: OpenModel, place: Path) -> CompiledPart:
        target = tvm_target(self._target)
        return CompiledPart(
            place / LIBRARY, build_model(self._request(str(place)), opened, target).built
        )


def show(found: Mapping[str, Cut | str]) -> None:
    heading("model | piece | million operations | TVM, ms | ONNX Runtime, ms | TVM / ORT", (0, 1))
    for name, cut in found.items():
        for cells in pieces(cut):
            row(name, *cells)
    print()
    heading(
        "model | ONNX Runtime, ms | in no compiled piece, ms | pieces | of them faster compiled "
        "| a cut, µs"
    )
    for name, cut in found.items():
        if isinstance(cut, str):
            row(name, *["–"] * 5)
            continue
        faster = sum(each.compiled_ms < each.other_ms for each in cut.pieces)
        a_cut = f"{1000 * cut.cuts_ms / cut.cuts:.0f}" if cut.cuts else "–"
        row(
            name,
            f"{cut.whole_ms:.3f}",
            f"{cut.refused_ms:.3f}",
            len(cut.pieces),
            faster,
            a_cut,
        )


def pieces(cut: Cut | str) -> Iterator[tuple[object, ...]]:
    if isinstance(cut, str):
        yield cut, "–", "–", "–", "–"
        return
    for each in cut.pieces:
        ratio = each.compiled_ms / each.other_ms
        times = (f"{each.compiled_ms:.3f}", f"{each.other_ms:.3f}", f"{ratio:.2f}")
        yield each.operators, f"{each.work / 1e6:.1f}", *times


if __name__ == "__main__":
    main()
