"""A model built in parts. Each part that can be compiled is, and timed beside ONNX Runtime on what
goes into it in the model; what is not faster is left to that, and the rest is put together."""

from __future__ import annotations

import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.inputs import NOTHING_KNOWN
from tunegate.artifacts.tasks import UNMEASURED
from tunegate.compiler.build.build_model import build_model
from tunegate.compiler.forms import LIBRARY
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.runtime import use_threads
from tunegate.compiler.targets import ResolvedTarget
from tunegate.compiler.versions import toolchain
from tunegate.errors import UnsupportedModelError
from tunegate.models.inputs.drawn_inputs import drawn_inputs
from tunegate.models.reference.comparison import kind
from tunegate.models.reference.part_session import reference_version
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, files_in
from tunegate.tune.compiler_protocol import BuildModel, Built, BuiltFunction
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_hybrid.assembly import Assembly, CompiledPart
from tunegate_hybrid.decision import PartsDecision
from tunegate_hybrid.messages import BuildParts
from tunegate_hybrid.open_parts import SplitModel
from tunegate_hybrid.partition import ModelPart
from tunegate_hybrid.plan_file import PLAN_FILE
from tunegate_hybrid.winners import Winners


def build_parts(how: BuildParts, split: SplitModel, target: ResolvedTarget) -> Built:
    """Raises UnsupportedModelError where no part is faster compiled."""
    started = time.monotonic()
    use_threads(how.threads)
    building = _Building(how, split, target)
    parts = building.chosen()
    if not parts:
        message = f"{how.build.model.path}: no part of the model is faster under TVM."
        raise UnsupportedModelError(message)
    return building.written(parts, started)


def part_request(request: BuildModel, place: Path) -> BuildModel:
    """The request to build a part into a directory. Its scratch lies beside that, which is replaced
    where the part is faster without some of its schedules. Those that were measured are not tried
    in each of many parts, which would take seconds for each."""
    measured = {each for each, source in request.sources.items() if source not in UNMEASURED}
    return msgspec.structs.replace(
        request,
        directory=str(place),
        scratch=str(place.with_name(f"{place.name}-scratch")),
        inputs=NOTHING_KNOWN,
        settled=tuple(sorted(measured.union(request.settled))),
    )


class _Building:
    def __init__(self, how: BuildParts, split: SplitModel, target: ResolvedTarget) -> None:
        request = how.build
        self._request, self._how, self._split, self._target = request, how, split, target
        self._inputs = drawn_inputs(split.prepared, request.inputs, request.model.path)
        self._feed = seeded_inputs(self._inputs, request.seed)
        self._assembly = Assembly(split, self._linked, Path(request.scratch), how.threads)

    def chosen(self) -> tuple[ModelPart, ...]:
        """The parts of the fastest model; what was decided for the same kernels, or by an earlier
        run, is not measured again."""
        if self._request.how is not None:
            return self._split.parts
        records, threads = self._request.records, self._how.threads
        is_tuned = any(f.workload.digest in records for f in self._split.functions)
        winners = Winners(self._split, self._assembly, self._feed, threads, is_tuned=is_tuned)
        decided = Path(self._how.decided)
        decision = PartsDecision.of_parts(decided, self._split.functions, records, threads)
        known = decision.read(set[int])
        if known is not None:
            return winners.put_together(known) if known else ()
        parts = winners.parts()
        compiled = (part for part in parts if part.is_compiled)
        decision.write({place for part in compiled for place in part.nodes})
        return parts

    def written(self, parts: Sequence[ModelPart], started: float) -> Built:
        """The artifact of these parts in the directory of the request."""
        directory = Path(self._request.directory)
        program = self._assembly.program(parts, self._split.graph.outputs, directory)
        outputs = program.run(self._feed)
        files = files_in(directory)
        compiled = [self._assembly.compiled(part).built for part in parts if part.is_compiled]
        key = self._key(files, compiled)
        functions = _together([function for each in compiled for function in each.functions])
        self._write_artifact(directory, key, outputs, functions)
        return Built(
            key=key,
            reference=str(self._split.prepared.original),
            functions=functions,
            size_bytes=sum((directory / name).stat().st_size for name in files),
            seconds=time.monotonic() - started,
            dropped=tuple(sorted(label for each in compiled for label in each.dropped)),
            inputs=tuple(each.drawn() for each in self._inputs),
            how=self._how_built(parts, functions),
        )

    def _how_built(
        self, parts: Sequence[ModelPart], functions: Sequence[BuiltFunction]
    ) -> HowBuilt:
        compiled = [place for part in parts if part.is_compiled for place in part.nodes]
        kept = {mark_of(each.rid) for each in functions if each.rid}
        kept.add(mark_of(self._split.graph.digest))
        return HowBuilt(compiled=tuple(sorted(compiled)), kept=tuple(sorted(kept)))

    def _linked(self, opened: OpenModel, place: Path) -> CompiledPart:
        request = part_request(self._request, place)
        return CompiledPart(place / LIBRARY, build_model(request, opened, self._target).built)

    def _key(self, files: dict[str, str], compiled: Sequence[Built]) -> str:
        """Equal keys mean equal code, equal weights and equal cuts. A library's bytes differ from
        build to build."""
        parts = {
            "files": {name: digest for name, digest in files.items() if not name.endswith(".so")},
            "compiled": [each.key for each in compiled],
            "threads": self._how.threads,
            **reference_version(),
        }
        return digest_of_document(parts)

    def _write_artifact(
        self, directory: Path, key: str, outputs: Sequence[Any], functions: Sequence[BuiltFunction]
    ) -> None:
        named = zip(self._split.graph.outputs, outputs, strict=True)
        ArtifactFile(
            runtime=self._how.runtime,
            file=PLAN_FILE,
            inputs=self._inputs,
            outputs=tuple(ArtifactTensor(name, *kind(value)) for name, value in named),
            threads=self._how.threads,
            model=self._request.model.path,
            key=key,
            target=msgspec.to_builtins(self._target.attributes),
            toolchain={**msgspec.to_builtins(toolchain()), **reference_version()},
            tasks=msgspec.to_builtins(functions),
        ).write(directory)


def _together(functions: Sequence[BuiltFunction]) -> tuple[BuiltFunction, ...]:
    """A kernel that several parts have is one, called as often as by all of them."""
    found: dict[str, BuiltFunction] = {}
    for each in functions:
        known = found.get(each.key.workload)
        weight = each.weight + (known.weight if known is not None else 0)
        found[each.key.workload] = msgspec.structs.replace(known or each, weight=weight)
    return tuple(found.values())
