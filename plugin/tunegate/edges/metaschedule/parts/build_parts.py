"""A model built in parts. Each part that can be compiled is, and timed beside ONNX Runtime on what
goes into it in the model; those that are not faster are left to that, and the rest is put together.
"""

from __future__ import annotations

import hashlib
import shutil
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

from tunegate.artifacts.input_rules import NOTHING_KNOWN, DrawnInput
from tunegate.edges.inputs.drawn_inputs import drawn_inputs
from tunegate.edges.metaschedule.build_model import LIBRARY, build_model
from tunegate.edges.metaschedule.parts.decision import PartsDecision
from tunegate.edges.metaschedule.parts.open_parts import SplitModel
from tunegate.edges.metaschedule.parts.plan_file import (
    PLAN_FILE,
    PartsPlan,
    PartTensor,
    PlannedPart,
)
from tunegate.edges.metaschedule.parts.program import PartsProgram
from tunegate.edges.metaschedule.parts.race import pays
from tunegate.edges.metaschedule.parts.steps import use_threads
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.models.saved_model import save
from tunegate.edges.models.seeded_inputs import seeded_inputs
from tunegate.edges.models.split.partition import ModelPart, merged
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor, files_in
from tunegate.edges.reference.output_values import kind
from tunegate.edges.reference.part_session import opened_part, reference_version
from tunegate.engine.protocol import BuildModel, Built, BuiltFunction, InParts
from tunegate.errors import UnsupportedModelError


class _Compiled(NamedTuple):
    part: ModelPart
    library: Path
    built: Built


def build_parts(
    request: BuildModel, how: InParts, split: SplitModel, target: ResolvedTarget
) -> Built:
    """Raises UnsupportedModelError where no part is faster compiled."""
    started = time.monotonic()
    use_threads(how.threads)
    compiled = [_compiled(request, split, part, target) for part in split.opened]
    building = _Building(request, split, how)
    kept = building.kept(compiled)
    if not kept:
        message = f"{request.model.path}: no part of it is faster compiled."
        raise UnsupportedModelError(message)
    return building.written(kept, target, started)


def _compiled(
    request: BuildModel, split: SplitModel, part: ModelPart, target: ResolvedTarget
) -> _Compiled:
    place = Path(request.scratch) / f"compiled-{part.nodes[0]}"
    alone = msgspec.structs.replace(
        request,
        directory=str(place),
        scratch=str(place / "scratch"),
        inputs=NOTHING_KNOWN,
        in_parts=None,
    )
    built = build_model(alone, split.opened[part], target).built
    return _Compiled(part, place / LIBRARY, built)


class _Building:
    def __init__(self, request: BuildModel, split: SplitModel, how: InParts) -> None:
        self._request, self._split, self._how = request, split, how
        self._inputs = drawn_inputs(split.prepared, request.inputs, request.model.path)
        self._feed = seeded_inputs(self._inputs, request.seed)

    def kept(self, compiled: Sequence[_Compiled]) -> list[_Compiled]:
        """The parts that are faster compiled, where with them the whole model is; what was decided
        for the same kernels is not decided again."""
        decision = PartsDecision.of(
            Path(self._how.decided), [each.built.functions for each in compiled], self._how.threads
        )
        places = decision.read()
        if places is None:
            places = self._measured(compiled)
            decision.write(places)
        return [compiled[place] for place in places]

    def _measured(self, compiled: Sequence[_Compiled]) -> tuple[int, ...]:
        program = self._put_together(compiled, self._scratch("all"))
        feeds = [feed for part, feed in program.feeds(self._feed) if part.is_compiled]
        by_nodes = {each.part.nodes: place for place, each in enumerate(compiled)}
        order = [by_nodes[part.nodes] for part in self._split.parts if part.nodes in by_nodes]
        paying = [
            place
            for place, feed in zip(order, feeds, strict=True)
            if self._part_pays(compiled[place], feed)
        ]
        chosen = [compiled[place] for place in sorted(paying)]
        return tuple(sorted(paying)) if chosen and self._whole_pays(chosen) else ()

    def _part_pays(self, compiled: _Compiled, feed: dict[str, Any]) -> bool:
        planned = self._planned(compiled.part, compiled)
        plan = PartsPlan(parts=(planned,), outputs=compiled.part.outputs)
        directory = self._scratch(f"one-{compiled.part.nodes[0]}")
        shutil.copyfile(compiled.library, directory / planned.file)
        under_onnx = opened_part(self._split.opened[compiled.part].prepared.original, self._threads)
        return pays(
            PartsProgram(directory, plan, self._threads).bound(feed),
            lambda: under_onnx.run(None, feed),
            self._threads,
        )

    def _whole_pays(self, chosen: Sequence[_Compiled]) -> bool:
        program = self._put_together(chosen, self._scratch("chosen"))
        whole = opened_part(self._split.prepared.original, self._threads)
        return pays(program.bound(self._feed), lambda: whole.run(None, self._feed), self._threads)

    def written(self, kept: Sequence[_Compiled], target: ResolvedTarget, started: float) -> Built:
        """The artifact of these parts in the directory of the request."""
        directory = Path(self._request.directory)
        directory.mkdir(parents=True, exist_ok=True)
        outputs = self._put_together(kept, directory).run(self._feed)
        files = files_in(directory)
        key = self._key(files, kept)
        functions = [function for each in kept for function in each.built.functions]
        self._write_artifact(directory, key, outputs, functions, target)
        return Built(
            key=key,
            reference=str(self._split.prepared.original),
            functions=_together(functions),
            size_bytes=sum((directory / name).stat().st_size for name in files),
            seconds=time.monotonic() - started,
            dropped=tuple(sorted(label for each in kept for label in each.built.dropped)),
            inputs=tuple(DrawnInput(t.name, t.shape, t.dtype, t.rule) for t in self._inputs),
        )

    def _put_together(self, compiled: Sequence[_Compiled], directory: Path) -> PartsProgram:
        split, by_nodes = self._split, {each.part.nodes: each for each in compiled}
        kept = [each.part for each in compiled]
        planned = []
        for place, part in enumerate(merged(split.graph.nodes, split.parts, kept, split.outputs)):
            each = by_nodes.get(part.nodes) if part.is_compiled else None
            planned.append(self._planned(part, each, place))
            file = directory / planned[-1].file
            if each is not None:
                shutil.copyfile(each.library, file)
            else:
                save(split.graph.cut(part), file)
        plan = PartsPlan(parts=tuple(planned), outputs=split.outputs)
        plan.write(directory)
        return PartsProgram(directory, plan, self._threads)

    def _planned(self, part: ModelPart, compiled: _Compiled | None, place: int = 0) -> PlannedPart:
        functions = compiled.built.functions if compiled is not None else ()
        return PlannedPart(
            is_compiled=compiled is not None,
            file=f"part-{place}.so" if compiled is not None else f"part-{place}.onnx",
            inputs=tuple(map(self._tensor, part.inputs)),
            outputs=tuple(map(self._tensor, part.outputs)),
            tasks=tuple({"function": each.function, "name": each.name} for each in functions),
        )

    def _tensor(self, name: str) -> PartTensor:
        found = self._split.graph.type_of(name)
        return PartTensor(name, found.dtype, found.shape)

    def _key(self, files: dict[str, str], kept: Sequence[_Compiled]) -> str:
        """Equal keys mean equal code, equal weights and equal cuts. A library's bytes differ from
        build to build."""
        parts = {
            "files": {name: digest for name, digest in files.items() if not name.endswith(".so")},
            "compiled": [each.built.key for each in kept],
            "threads": self._threads,
            **reference_version(),
        }
        return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()

    def _write_artifact(
        self,
        directory: Path,
        key: str,
        outputs: Sequence[Any],
        functions: Sequence[BuiltFunction],
        target: ResolvedTarget,
    ) -> None:
        named = zip(self._split.outputs, outputs, strict=True)
        ArtifactFile(
            runtime=self._how.runtime,
            file=PLAN_FILE,
            inputs=self._inputs,
            outputs=tuple(ArtifactTensor(name, *kind(value)) for name, value in named),
            threads=self._threads,
            model=self._request.model.path,
            key=key,
            target=msgspec.to_builtins(target.attributes),
            toolchain={**msgspec.to_builtins(toolchain()), **reference_version()},
            tasks=msgspec.to_builtins(_together(functions)),
        ).write(directory)

    def _scratch(self, name: str) -> Path:
        found = Path(self._request.scratch) / name
        found.mkdir(parents=True, exist_ok=True)
        return found

    @property
    def _threads(self) -> int:
        return self._how.threads


def _together(functions: Sequence[BuiltFunction]) -> tuple[BuiltFunction, ...]:
    """A kernel that several parts have is one, called as often as by all of them."""
    found: dict[str, BuiltFunction] = {}
    for each in functions:
        known = found.get(each.key.workload)
        weight = each.weight + (known.weight if known is not None else 0)
        found[each.key.workload] = msgspec.structs.replace(known or each, weight=weight)
    return tuple(found.values())
