"""A model built from records: the best schedule of each kernel that replays, linked and described.

A schedule that was transferred from a neighbour must also prove itself inside the model, beside the
default schedule it replaces: alone it may be fast, and slow where its data comes from elsewhere.
(Gibson & Cano, PACT 2022, see this difference too; a replication of theirs that did not check ended
slower than untuned.)
"""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import tvm
from tvm import relax

from tunegate.artifacts.input_rules import DrawnInput
from tunegate.artifacts.schedule_source import ScheduleSource as Origin
from tunegate.cost_model.prior import prior_of
from tunegate.cost_model.sample_features import SampleFeatures
from tunegate.edges.inputs.drawn_inputs import drawn_inputs
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.kernel_profile import slower_in_model
from tunegate.edges.metaschedule.loader import device_exists
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.passes.default_schedule import with_default_schedule
from tunegate.edges.metaschedule.passes.elementary_functions import vectorize_elementary_functions
from tunegate.edges.metaschedule.passes.prepacking import folded
from tunegate.edges.metaschedule.passes.split_concatenations import IS_SCHEDULED
from tunegate.edges.metaschedule.space import DesignSpace
from tunegate.edges.metaschedule.targets import ResolvedTarget
from tunegate.edges.metaschedule.transferred import expectation, likeliest
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.models.prepared import PreparedModel
from tunegate.edges.models.saved_model import file_digests
from tunegate.edges.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.engine.protocol import BuildModel, Built, BuiltFunction, Schedule
from tunegate_cache.format.records import TuningRecord, WorkloadKey

LIBRARY = "model.so"
_UNMEASURED = ("transfer", "claimed")
"""Sources of schedules that were not measured for their kernel, or not
by anybody who is trusted."""


class _Finished(NamedTuple):
    """What is linked, and the inputs that it is run on."""

    prepared: PreparedModel
    module: Any
    inputs: tuple[ArtifactTensor, ...]


class _Choice(NamedTuple):
    """`main` is None for the default schedule; `record` is what it came from."""

    function: ModelFunction
    main: Any | None
    record: TuningRecord | None


def build_model(request: BuildModel, opened: OpenModel, target: ResolvedTarget) -> Built:
    """Link the model into the request's directory."""
    started = time.monotonic()
    directory = Path(request.directory)
    inputs = drawn_inputs(opened.prepared, request.inputs, request.model.path)
    choices = [_choice(f, request.records, target) for f in opened.functions]
    module = _scheduled(opened.module, choices)
    size = _export(module, target, directory, request)
    dropped = _slower_ones(request, opened, target, choices, inputs)
    if dropped:
        choices = [_default(c.function) if c.function.name in dropped else c for c in choices]
        module = _scheduled(opened.module, choices)
        size = _export(module, target, directory, request)
    built = [_built_function(c, target, request) for c in choices]
    key_text = _build_key(opened.prepared, target, built, request)
    _write_artifact(request, _Finished(opened.prepared, module, inputs), target, built, key_text)
    return Built(
        key=key_text,
        reference=str(opened.prepared.original),
        functions=tuple(built),
        size_bytes=size,
        seconds=time.monotonic() - started,
        dropped=tuple(sorted(c.function.label for c in choices if c.function.name in dropped)),
        inputs=tuple(DrawnInput(t.name, t.shape, t.dtype, t.rule) for t in inputs),
    )


def _choice(
    function: ModelFunction,
    records: Mapping[str, tuple[TuningRecord, ...]],
    target: ResolvedTarget,
) -> _Choice:
    found = records.get(function.workload.digest, ())
    return _Choice(function, *_best_that_replays(function, found, target.target))


def _default(function: ModelFunction) -> _Choice:
    return _Choice(function, None, None)


def _scheduled(module: Any, choices: Iterable[_Choice]) -> Any:
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
    choices: Sequence[_Choice],
    inputs: tuple[ArtifactTensor, ...],
) -> frozenset[str]:
    """Names of kernels whose schedule nobody that is trusted has measured, and that is slower
    inside the model than the default one."""
    transferred = {
        choice.function.name
        for choice in choices
        if choice.main is not None
        and request.sources.get(choice.function.workload.digest) in _UNMEASURED
        and choice.function.workload.digest not in request.settled
    }
    if not transferred or not device_exists(request.target.kind):
        return frozenset()
    without = [_default(c.function) if c.function.name in transferred else c for c in choices]
    beside = Path(request.scratch) / "without-transferred"
    _export(_scheduled(opened.module, without), target, beside, request)
    return slower_in_model(
        Path(request.directory) / LIBRARY,
        beside / LIBRARY,
        inputs=inputs,
        kernels=transferred,
        kind=request.target.kind,
        seed=request.seed,
    )


def _best_that_replays(
    function: ModelFunction, records: tuple[TuningRecord, ...], target: Any
) -> tuple[Any | None, TuningRecord | None]:
    usable = [record for record in records if record.status == "ok"]
    if not usable:
        return None, None
    space = DesignSpace(function.workload, target)
    for record, wanted in _in_order(usable, space, function.workload.digest, target):
        if not record.template:
            return None, record  # the default schedule was measured, and nothing was faster
        schedule = space.replay(wanted)
        if schedule is not None:
            main = schedule.mod["main"].without_attr("global_symbol")
            used = msgspec.structs.replace(record, decisions=wanted.decisions)
            return main.with_attr(IS_SCHEDULED, True), used
    return None, None


def _in_order(
    records: Sequence[TuningRecord], space: DesignSpace, workload: str, target: Any
) -> list[tuple[TuningRecord, Schedule]]:
    """The best first: by their times, or, of neighbours, whose times say nothing here, by what is
    expected of them. A neighbour's schedule is moved to the extents here: TVM's own repair may make
    a tile that takes minutes to compile, and nobody has tried."""
    schedules = [Schedule(record.template, record.decisions) for record in records]
    if records[0].key.workload == workload:
        return list(zip(records, schedules, strict=True))
    refits = [space.refit(schedule) for schedule in schedules]
    fitting = [(r, refit) for r, refit in zip(records, refits, strict=True) if refit is not None]
    features = SampleFeatures(space.sampling(), space.sketches())
    expect = expectation(features, prior_of(str(target.kind.name)))
    return [fitting[place] for place in likeliest([refit for _, refit in fitting], expect)]


def _built_function(choice: _Choice, target: ResolvedTarget, request: BuildModel) -> BuiltFunction:
    function, _, record = choice
    key = WorkloadKey(function.workload.digest, target.key)
    source = cast("Origin", request.sources.get(function.workload.digest, "exact"))
    is_own = record is not None and record.key == key and source != "claimed"
    return BuiltFunction(
        key=key,
        name=function.label,
        function=str(function.name),
        weight=function.weight,
        source=source if record is not None and record.template else "default",
        rid=record_id(key, record) if record is not None and record.template else "",
        ms=record.median_ms if record is not None and is_own else None,
        verified=record is None or is_own,
    )


def record_id(key: WorkloadKey, record: TuningRecord) -> str:
    """Identity of the candidate, however often it was measured."""
    text = msgspec.json.encode([key.workload, key.target, record.template, record.decisions])
    return hashlib.sha256(text).hexdigest()


def _export(module: Any, target: ResolvedTarget, directory: Path, request: BuildModel) -> int:
    vectorize_elementary_functions()
    # Without a GPU the pass finds nothing to capture.
    graphs = {"relax.backend.use_cuda_graph": request.cuda_graphs}
    with target.target, tvm.transform.PassContext(opt_level=3, config=graphs):
        module = folded(module)
        module = with_default_schedule(module, target.target)
        executable = relax.build(module, target=target.target)
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    executable.export_library(str(library))
    return library.stat().st_size


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
        "schedules": sorted({(f.key.workload, f.rid) for f in built}),
        **({"cuda-graphs": True} if request.cuda_graphs else {}),
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _write_artifact(
    request: BuildModel,
    finished: _Finished,
    target: ResolvedTarget,
    built: list[BuiltFunction],
    key: str,
) -> None:
    outputs = _output_tensors(finished.module, finished.prepared.outputs)
    ArtifactFile(
        runtime="tvm",
        file=LIBRARY,
        inputs=finished.inputs,
        outputs=outputs,
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
