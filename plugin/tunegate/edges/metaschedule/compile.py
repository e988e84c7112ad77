"""The child that compiles a model: lists its tasks, builds it from records, and checks the build."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, NamedTuple, cast

import msgspec
import tvm
from tvm import relax
from tvm.s_tir import dlight

from tunegate.artifacts.builds import Source as Origin
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.edges.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.edges.metaschedule.adopt import adopt
from tunegate.edges.metaschedule.check import check
from tunegate.edges.metaschedule.check_messages import CheckArtifact, CheckReply
from tunegate.edges.metaschedule.export_database import export_database
from tunegate.edges.metaschedule.functions import ModelFunction, functions_of, layer_names
from tunegate.edges.metaschedule.import_onnx import import_model
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.layout import is_channels_last
from tunegate.edges.metaschedule.messages import (
    Adopted,
    AdoptSchedules,
    BuildModel,
    Built,
    BuiltFunction,
    CompileReply,
    CompileRequest,
    ExportDatabase,
    Exported,
    Failed,
    ListTasks,
    ModelFile,
    Schedule,
    Tasks,
)
from tunegate.edges.metaschedule.prepacking import folded
from tunegate.edges.metaschedule.space import DesignSpace, design_space
from tunegate.edges.metaschedule.targets import ResolvedTarget, tvm_target
from tunegate.edges.metaschedule.versions import toolchain
from tunegate.edges.onnx_prepare import PreparedModel, prepare
from tunegate.errors import TunegateError
from tunegate_cache.records import TuningRecord, WorkloadKey

Request = CompileRequest | CheckArtifact

LIBRARY = "model.so"


class _OpenModel(NamedTuple):
    """What listing the tasks and building have in common."""

    prepared: PreparedModel
    module: Any
    functions: list[ModelFunction]


_open_model: tuple[ModelFile, _OpenModel] | None = None
"""The model that was asked about last: the next question is about the same one."""


def answer(request: CompileRequest | CheckArtifact) -> CompileReply | CheckReply:
    """Serve one request; a model that cannot be compiled is a reply, not a crash."""
    try:
        match request:
            case ListTasks():
                return _list_tasks(request)
            case BuildModel():
                return _build(request)
            case CheckArtifact():
                return check(request)
            case ExportDatabase():
                return _export_database(request)
            case AdoptSchedules():
                return _adopt(request)
    except TunegateError as error:
        return Failed(str(error), model=True)


def _list_tasks(request: ListTasks) -> Tasks:
    target = tvm_target(request.target)
    functions = _open(request, target).functions
    return Tasks(tuple(_merge(functions, request, target)))


def _export_database(request: ExportDatabase) -> Exported:
    target = tvm_target(request.target)
    functions = _open(request, target).functions
    return export_database(functions, request.records, target.target, Path(request.directory))


def _adopt(request: AdoptSchedules) -> Adopted:
    target = tvm_target(request.target)
    return Adopted(tuple(adopt(_open(request, target).functions, request.foreign, target)))


def _open(request: CompileRequest, target: ResolvedTarget) -> _OpenModel:
    """A child serves one target only."""
    global _open_model  # noqa: PLW0603 -- the state of this process
    if _open_model is None or _open_model[0] != request.model:
        _open_model = request.model, _opened(request, target)
    return _open_model[1]


def _opened(request: CompileRequest, target: ResolvedTarget) -> _OpenModel:
    load_intrinsics(request.target.kind)
    prepared = prepare(
        Path(request.model.file),
        shapes=request.model.shapes,
        into=Path(request.scratch),
        path=request.model.path,
        is_checked=isinstance(request, BuildModel),
    )
    module = import_model(
        prepared,
        target.target,
        request.model.path,
        channels_last=is_channels_last(request.target),
    )
    return _OpenModel(prepared, module, functions_of(module, layer_names(prepared.optimized)))


def _merge(
    functions: list[ModelFunction], request: ListTasks, target: ResolvedTarget
) -> list[TuningTask]:
    """Functions of one workload are one task: fusion may name the same code twice."""
    together: dict[str, list[ModelFunction]] = {}
    for function in functions:
        together.setdefault(function.workload.digest, []).append(function)
    return [
        TuningTask(
            key=WorkloadKey(digest, target.key),
            shape=same[0].workload.shape,
            target=request.target.name,
            operator=same[0].operator,
            dtype=same[0].dtype,
            flops=same[0].flops,
            uses=(
                TaskUse(
                    model=request.model.path,
                    side="head",
                    weight=sum(f.weight for f in same),
                    name=same[0].label,
                ),
            ),
        )
        for digest, same in together.items()
    ]


def _build(request: BuildModel) -> Built:
    started = time.monotonic()
    target = tvm_target(request.target)
    prepared, opened, functions = _open(request, target)
    module = opened.clone()
    built = []
    for function in functions:
        records = request.records.get(function.workload.digest, ())
        scheduled, record = _best_that_replays(function, records, target.target)
        if scheduled is not None:
            module.update_func(module.get_global_var(function.name), scheduled)
        key = WorkloadKey(function.workload.digest, target.key)
        source = cast("Origin", request.sources.get(function.workload.digest, "exact"))
        built.append(_built_function(function, key, record, source))
    size = _export(module, target, Path(request.directory))
    key_text = _build_key(prepared, target, built)
    _write_artifact(request, (prepared, module), target, built, key_text)
    seconds = time.monotonic() - started
    return Built(
        key=key_text,
        reference=str(prepared.fixed),
        functions=tuple(built),
        size_bytes=size,
        seconds=seconds,
    )


def _best_that_replays(
    function: ModelFunction, records: tuple[TuningRecord, ...], target: Any
) -> tuple[Any | None, TuningRecord | None]:
    usable = [record for record in records if record.status == "ok"]
    if not usable:
        return None, None
    space = design_space(function.workload, target)
    for record in usable:
        if not record.template:
            return None, record  # the default schedule was measured, and nothing was faster
        wanted = _own(space, record, function.workload.digest)
        schedule = None if wanted is None else space.replay(wanted)
        if wanted is not None and schedule is not None:
            main = schedule.mod["main"].without_attr("global_symbol")
            used = msgspec.structs.replace(record, decisions=wanted.decisions)
            return main.with_attr("tirx.is_scheduled", True), used
    return None, None


def _own(space: DesignSpace, record: TuningRecord, workload: str) -> Schedule | None:
    """A neighbour's schedule is moved to the extents here: TVM's own repair may make a tile that
    takes minutes to compile, and nobody has tried."""
    schedule = Schedule(record.template, record.decisions)
    return schedule if record.key.workload == workload else space.refit(schedule)


def _built_function(
    function: ModelFunction, key: WorkloadKey, record: TuningRecord | None, source: Origin
) -> BuiltFunction:
    is_own = record is not None and record.key == key
    return BuiltFunction(
        key=key,
        name=function.label,
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


def _export(module: Any, target: ResolvedTarget, directory: Path) -> int:
    with target.target, tvm.transform.PassContext(opt_level=3):
        module = folded(module)
        if target.attributes["kind"] == "cuda":
            module = dlight.ApplyDefaultSchedule(
                dlight.gpu.Matmul(),
                dlight.gpu.GEMV(),
                dlight.gpu.Reduction(),
                dlight.gpu.GeneralReduction(),
                dlight.gpu.Fallback(),
            )(module)
        executable = relax.build(module, target=target.target)
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    executable.export_library(str(library))
    return library.stat().st_size


def _build_key(prepared: PreparedModel, target: ResolvedTarget, built: list[BuiltFunction]) -> str:
    """Equal keys mean equal code and equal weights: such a pair needs no measuring."""
    parts = {
        "model": hashlib.sha256(prepared.optimized.read_bytes()).hexdigest(),
        "target": target.attributes,
        "toolchain": toolchain(),
        "schedules": sorted({(f.key.workload, f.rid) for f in built}),
    }
    return hashlib.sha256(msgspec.json.encode(parts, order="sorted")).hexdigest()


def _write_artifact(
    request: BuildModel,
    opened: tuple[PreparedModel, Any],
    target: ResolvedTarget,
    built: list[BuiltFunction],
    key: str,
) -> None:
    prepared, module = opened
    outputs = _output_tensors(module, prepared.outputs)
    ArtifactFile(
        runtime="tvm",
        file=LIBRARY,
        inputs=tuple(ArtifactTensor(t.name, t.shape, t.dtype) for t in prepared.inputs),
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
