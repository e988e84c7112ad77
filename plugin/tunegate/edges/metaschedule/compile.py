"""The child that compiles a model: lists its tasks, builds it from
records, and checks the build."""

from __future__ import annotations

from pathlib import Path

from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.edges.metaschedule.build_model import OpenModel, build_model
from tunegate.edges.metaschedule.checks.check import check_numbers
from tunegate.edges.metaschedule.checks.check_messages import CheckArtifact, CheckReply
from tunegate.edges.metaschedule.export_database import export_database
from tunegate.edges.metaschedule.functions import ModelFunction, functions_of, layer_names
from tunegate.edges.metaschedule.import_in_layout import import_in_layout
from tunegate.edges.metaschedule.import_schedules import import_schedules
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.passes.layout import layouts
from tunegate.edges.metaschedule.targets import ResolvedTarget, tvm_target
from tunegate.edges.models.preparation import prepare
from tunegate.edges.processes.out_of_memory import memory_problem
from tunegate.engine.protocol import (
    BuildModel,
    Built,
    CompileReply,
    CompileRequest,
    ExportDatabase,
    Exported,
    Failed,
    Imported,
    ImportSchedules,
    ListTasks,
    ModelFile,
    Tasks,
)
from tunegate.errors import ConfigError, TunegateError, UnsupportedModelError
from tunegate_cache.format.records import WorkloadKey

Request = CompileRequest | CheckArtifact

_open_model: tuple[ModelFile, OpenModel] | None = None
"""The model that was asked about last: the next question is about the same one."""


def handle_request(request: CompileRequest | CheckArtifact) -> CompileReply | CheckReply:
    """Serve one request; a model that cannot be compiled is a reply, not a crash."""
    try:
        return _answered(request)
    except ConfigError as error:
        return Failed(str(error), model=False, configuration=True)
    except TunegateError as error:
        is_valid = isinstance(error, UnsupportedModelError)
        return Failed(str(error), model=True, compiler=is_valid)
    except Exception as error:
        problem = memory_problem(error)
        if not problem:
            raise
        return Failed(f"{_path(request)}: {problem}.", model=True, compiler=True)


def _answered(request: CompileRequest | CheckArtifact) -> CompileReply | CheckReply:
    match request:
        case ListTasks():
            return _list_tasks(request)
        case BuildModel():
            return _build(request)
        case CheckArtifact():
            return check_numbers(request)
        case ExportDatabase():
            return _export_database(request)
        case ImportSchedules():
            return _import_schedules(request)


def _path(request: CompileRequest | CheckArtifact) -> str:
    if isinstance(request, CheckArtifact):
        return Path(request.directory).name
    return request.model.path


def _list_tasks(request: ListTasks) -> Tasks:
    target = tvm_target(request.target)
    functions = _open(request, target).functions
    return Tasks(tuple(_merge(functions, request, target)))


def _export_database(request: ExportDatabase) -> Exported:
    target = tvm_target(request.target)
    functions = _open(request, target).functions
    return export_database(functions, request.records, target.target, Path(request.directory))


def _import_schedules(request: ImportSchedules) -> Imported:
    target = tvm_target(request.target)
    return Imported(
        tuple(import_schedules(_open(request, target).functions, request.foreign, target))
    )


def _open(request: CompileRequest, target: ResolvedTarget) -> OpenModel:
    """A child serves one target only."""
    global _open_model  # noqa: PLW0603 -- the state of this process
    if _open_model is None or _open_model[0] != request.model:
        _open_model = request.model, _opened(request, target)
    return _open_model[1]


def _opened(request: CompileRequest, target: ResolvedTarget) -> OpenModel:
    load_intrinsics(request.target.kind)
    prepared = prepare(
        Path(request.model.file),
        shapes=request.model.shapes,
        into=Path(request.scratch),
        path=request.model.path,
    )
    module = import_in_layout(prepared, target.target, request.model.path, layouts(request.target))
    return OpenModel(prepared, module, functions_of(module, layer_names(prepared.optimized)))


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
            bytes_moved=same[0].bytes_moved,
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
    target = tvm_target(request.target)
    return build_model(request, _open(request, target), target)
