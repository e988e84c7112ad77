"""A model built from records: the best schedule of each kernel that replays, linked and described.

A schedule must also prove itself inside the model, beside the default one that it replaces: alone
it may be fast, and slow where its data comes from elsewhere, and nobody has timed a neighbour's.
(Gibson & Cano, PACT 2022, see this difference too; a replication of theirs that did not check ended
slower than untuned.)
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Collection, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec

from tunegate.artifacts.candidates import FLOAT32, LAUNCH, WHOLE
from tunegate.artifacts.schedule_source import UNMEASURED, ScheduleSource
from tunegate.digests import digest_of_document
from tunegate.edges.inputs.drawn_inputs import drawn_inputs
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.kernel_profile import slower_in_model
from tunegate.edges.metaschedule.linked_build import (
    LIBRARY,
    Finished,
    is_native,
    link,
    link_kernels,
)
from tunegate.edges.metaschedule.loader import device_exists
from tunegate.edges.metaschedule.low_precision.lower_kernels import (
    TileKernels,
    key_parts,
    tile_kernels,
)
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.passes.default_schedule import DEFAULTS_VERSION
from tunegate.edges.metaschedule.schedule_choice import (
    ScheduleChoice,
    as_before,
    chosen_schedule,
    record_id,
    without_schedules,
)
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.models.saved_model import file_digests
from tunegate.edges.native.native_object import NATIVE_OBJECT
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.engine.protocol import BuildModel, Built, BuiltFunction
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import WorkloadKey


class ModelBuild(NamedTuple):
    """A model that was built, and the schedules that its kernels have."""

    built: Built
    choices: list[ScheduleChoice]


def build_model(request: BuildModel, opened: OpenModel, target: ResolvedTarget) -> ModelBuild:
    """Link the model into the request's directory."""
    started = time.monotonic()
    inputs = drawn_inputs(opened.prepared, request.inputs, request.model.path)
    choices = [_chosen(f, request, opened, target) for f in opened.functions]
    known = _known_slower(request, opened, target, choices)
    if request.how is not None:
        choices = as_before(choices, request.how, target.key)
    left = without_schedules(choices, known)
    built = link_model(request, opened, target, left, inputs)
    lower = {each.function for each in built.functions if each.source == "tiles"}
    dropped = _slower_ones(request, opened, target, without_schedules(left, lower), inputs)
    if dropped:
        left = without_schedules(left, dropped)
        built = link_model(request, opened, target, left, inputs)
    dropped |= known
    labels = sorted(c.function.label for c in choices if c.function.name in dropped)
    seconds = time.monotonic() - started
    return ModelBuild(msgspec.structs.replace(built, seconds=seconds, dropped=tuple(labels)), left)


def _chosen(
    function: ModelFunction, request: BuildModel, opened: OpenModel, target: ResolvedTarget
) -> ScheduleChoice:
    records = request.records.get(function.workload.digest, ())
    source = _source(function, request)
    choice: ScheduleChoice = opened.known.chosen(
        function.name,
        (records, source),
        lambda: chosen_schedule(function, request.records, target, source),
    )
    return choice


def link_model(
    request: BuildModel,
    opened: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
) -> Built:
    """The model with these schedules and no other, in the request's directory."""
    started = time.monotonic()
    lower = tile_kernels(opened.module, choices, target, request.precision)
    choices = without_schedules(choices, lower.kernels)
    module = _scheduled(opened.module, choices)
    outputs = _output_tensors(module, opened.prepared.outputs)
    has_schedules = any(choice.main is not None for choice in choices)
    plain = opened.module if has_schedules else module
    finished = Finished(opened, module, plain, inputs, outputs, lower)
    size = link(finished, request)
    functions = [_built_function(c, target, request, lower.kernels) for c in choices]
    key = _build_key(opened.prepared, target, functions, request)
    _write_artifact(request, finished, target, functions, key)
    return Built(
        key=key,
        reference=str(opened.prepared.original),
        functions=tuple(functions),
        size_bytes=size,
        seconds=time.monotonic() - started,
        inputs=tuple(each.drawn() for each in inputs),
        how=HowBuilt(kept=tuple(sorted({mark_of(each.rid) for each in functions if each.rid}))),
    )


def _scheduled(module: Any, choices: Iterable[ScheduleChoice]) -> Any:
    scheduled = module.clone()
    for choice in choices:
        if choice.main is not None:
            name = scheduled.get_global_var(choice.function.name)
            scheduled.update_func(name, choice.main)
    return scheduled


def _slower_ones(
    request: BuildModel,
    opened: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
) -> frozenset[str]:
    """Names of kernels whose schedule is slower inside the model than the default one."""
    tried = {choice.function.name for choice in choices if _is_tried(choice, request, opened)}
    if request.how is not None or not tried or not device_exists(request.target.kind):
        return frozenset()
    without = without_schedules(choices, tried)
    beside = Path(request.scratch) / "without-tried"
    plain = TileKernels({}, target.target)
    link_kernels(opened, _scheduled(opened.module, without), plain, beside, request)
    # A library that was loaded from a path once is what that path gives from then on, and the
    # model may be linked there again.
    library = Path(request.scratch) / "with-tried.so"
    if is_native(request) or request.is_whole or request.precision != FLOAT32:
        link_kernels(opened, _scheduled(opened.module, choices), plain, library, request)
        library /= LIBRARY
    else:
        shutil.copyfile(Path(request.directory) / LIBRARY, library)
    slower = slower_in_model(
        library,
        beside / LIBRARY,
        inputs=inputs,
        kernels=tried,
        kind=request.target.kind,
        seed=request.seed,
    )
    for choice in choices:
        if (name := choice.function.name) in tried:
            opened.known.tried(name, choice.schedule, slower=name in slower)
    return slower


def _known_slower(
    request: BuildModel,
    opened: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[ScheduleChoice],
) -> frozenset[str]:
    """Names of kernels whose schedule an earlier build found to be slower inside the model, without
    those that tiles replace."""
    if request.how is not None:
        return frozenset()
    slower = {choice.function.name for choice in choices if _is_slower(choice, opened)}
    if slower and request.precision != FLOAT32:
        slower -= tile_kernels(opened.module, choices, target, request.precision).kernels.keys()
    return frozenset(slower)


def _is_slower(choice: ScheduleChoice, opened: OpenModel) -> bool | None:
    return opened.known.is_slower(choice.function.name, choice.schedule)


def _is_tried(choice: ScheduleChoice, request: BuildModel, opened: OpenModel) -> bool:
    """Whether the schedule is held against the default one. On a GPU what was measured is not: a
    kernel finds there in a model what it finds alone."""
    if choice.main is None or choice.function.workload.digest in request.settled:
        return False
    if _is_slower(choice, opened) is not None:
        return False
    is_measured = _source(choice.function, request) not in UNMEASURED
    return request.target.kind == "llvm" or not is_measured


def _built_function(
    choice: ScheduleChoice, target: ResolvedTarget, request: BuildModel, lower: Collection[str]
) -> BuiltFunction:
    function, record, schedule = choice.function, choice.record, choice.schedule
    is_lower = function.name in lower
    key = WorkloadKey(function.workload.digest, target.key)
    source = _source(function, request) if choice.picked is None else "prior"
    is_own = record is not None and record.key == key and source != "claimed"
    return BuiltFunction(
        key=key,
        name=function.label,
        function=str(function.name),
        weight=function.weight,
        source="tiles" if is_lower else source if schedule is not None else "default",
        rid=record_id(key, schedule) if schedule is not None else "",
        ms=record.median_ms if record is not None and is_own else None,
        verified=is_own or (record is None and schedule is None),
        algorithm=function.algorithm,
    )


def _source(function: ModelFunction, request: BuildModel) -> ScheduleSource:
    return cast("ScheduleSource", request.sources.get(function.workload.digest, "exact"))


def _build_key(
    prepared: PreparedModel,
    target: ResolvedTarget,
    built: list[BuiltFunction],
    request: BuildModel,
) -> str:
    """Equal keys mean equal code and equal weights: such a pair needs no measuring."""
    parts = {
        "model": file_digests(prepared.optimized),
        "target": target.attributes,
        "toolchain": toolchain(),
        "defaults": DEFAULTS_VERSION,
        "schedules": sorted({(f.key.workload, f.rid) for f in built}),
        **({"cuda-graphs": True} if request.cuda_graphs else {}),
        **({"artifact": "native"} if is_native(request) else {}),
        **({LAUNCH: WHOLE} if request.is_whole else {}),
        **key_parts(request.precision, built),
    }
    return digest_of_document(parts)


def _write_artifact(
    request: BuildModel,
    finished: Finished,
    target: ResolvedTarget,
    built: list[BuiltFunction],
    key: str,
) -> None:
    file, entry = (NATIVE_OBJECT, "model_run") if is_native(request) else (LIBRARY, "main")
    ArtifactFile(
        runtime="tvm",
        variant=request.variant,
        settings=request.settings,
        file=file,
        entry=entry,
        inputs=finished.inputs,
        outputs=finished.outputs,
        threads=int(target.attributes.get("num-cores", 1)),
        device="cuda" if target.attributes["kind"] == "cuda" else "cpu",
        model=request.model.path,
        key=key,
        target=msgspec.to_builtins(target.attributes),
        toolchain=msgspec.to_builtins(toolchain()),
        tasks=msgspec.to_builtins(built),
    ).write(Path(request.directory))


def _output_tensors(module: Any, names: Mapping[int, str] | tuple[str, ...]) -> tuple[Any, ...]:
    kind = module["main"].ret_ty
    kinds = kind.fields if hasattr(kind, "fields") else [kind]
    return tuple(
        ArtifactTensor(names[i], tuple(int(n) for n in k.shape.values), str(k.dtype.dtype))
        for i, k in enumerate(kinds)
    )
