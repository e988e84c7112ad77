"""The child that compiles a model: lists its tasks, builds it from
records, and checks the build."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.artifacts.candidates import FLOAT32
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.edges.metaschedule.build_model import ModelBuild, build_model
from tunegate.edges.metaschedule.checks.check import check_numbers
from tunegate.edges.metaschedule.checks.check_messages import (
    CheckArtifact,
    CheckReply,
    MendBuild,
    Mended,
)
from tunegate.edges.metaschedule.checks.mended_build import mended_build
from tunegate.edges.metaschedule.export_database import export_database
from tunegate.edges.metaschedule.functions import ModelFunction
from tunegate.edges.metaschedule.import_schedules import import_schedules
from tunegate.edges.metaschedule.intrinsics import load_intrinsics
from tunegate.edges.metaschedule.low_precision.lower_kernels import require_tiles
from tunegate.edges.metaschedule.open_model import OpenModel
from tunegate.edges.metaschedule.parts.build_parts import build_parts
from tunegate.edges.metaschedule.parts.open_parts import SplitModel
from tunegate.edges.metaschedule.parts.opening import (
    OpenedModel,
    cut_open,
    opened_as,
    opened_model,
)
from tunegate.edges.metaschedule.parts.whole import is_slower
from tunegate.edges.metaschedule.targets import ResolvedTarget, tvm_target
from tunegate.edges.metaschedule.whole.size import require_small
from tunegate.edges.processes.out_of_memory import lacked_memory, memory_problem
from tunegate.engine.compiler_protocol import (
    BuildModel,
    Built,
    CompileReply,
    CompileRequest,
    ExportDatabase,
    Exported,
    Imported,
    ImportSchedules,
    InParts,
    ListTasks,
    NoParts,
    Tasks,
)
from tunegate.engine.protocol import Failed, ModelFile
from tunegate.errors import ConfigError, NotOfferedError, TunegateError, UnsupportedModelError
from tunegate_cache.format.records import WorkloadKey

Request = CompileRequest | CheckArtifact | MendBuild

_open_model: tuple[ModelFile, OpenedModel] | None = None
"""The model that was asked about last: the next question is about the same one."""
_last_build: ModelBuild | None = None


def handle_request(request: Request) -> CompileReply | CheckReply:
    """Serve one request; a model that cannot be compiled is a reply, not a crash."""
    try:
        return _answered(request)
    except ConfigError as error:
        return Failed(str(error), model=False, configuration=True)
    except NotOfferedError as error:
        return Failed(_not_offered(request, error), model=True)
    except TunegateError as error:
        is_valid = isinstance(error, UnsupportedModelError)
        return Failed(str(error), model=True, compiler=is_valid, memory=lacked_memory(error))
    except Exception as error:
        problem = memory_problem(error)
        if not problem:
            raise
        told = f"{_path(request)}: {problem}."
        return Failed(told, model=True, compiler=True, memory=True)


def _answered(request: Request) -> CompileReply | CheckReply:
    match request:
        case ListTasks():
            return _list_tasks(request)
        case BuildModel():
            return _build(request)
        case CheckArtifact():
            return check_numbers(request)
        case MendBuild():
            return _mend(request)
        case ExportDatabase():
            return _export_database(request)
        case ImportSchedules():
            return _import_schedules(request)


def _not_offered(request: Request, error: NotOfferedError) -> str:
    precision = request.precision if isinstance(request, BuildModel) else FLOAT32
    is_whole = isinstance(request, BuildModel) and request.is_whole
    what = "one launch" if is_whole else precision
    return f"{_path(request)}: TVM does not offer {what}: {error}."


def _path(request: Request) -> str:
    match request:
        case CheckArtifact(directory=directory):
            return Path(directory).name
        case MendBuild(build=build):
            return build.model.path
        case _:
            return request.model.path


def _list_tasks(request: ListTasks) -> Tasks:
    opened = _open(request, in_parts=request.in_parts)
    tasks = _merge(opened.functions, request, tvm_target(request.target))
    return Tasks(tuple(tasks), opened.reason if isinstance(opened, SplitModel) else "")


def _export_database(request: ExportDatabase) -> Exported:
    target = tvm_target(request.target)
    functions = _open(request).functions
    return export_database(functions, request.records, target.target, Path(request.directory))


def _import_schedules(request: ImportSchedules) -> Imported:
    target = tvm_target(request.target)
    functions = _open(request).functions
    return Imported(tuple(import_schedules(functions, request.foreign, target)))


def _open(request: CompileRequest, *, in_parts: bool = True) -> OpenedModel:
    """A child serves one target only."""
    global _open_model  # noqa: PLW0603 -- the state of this process
    if _open_model is None or _open_model[0] != request.model:
        _open_model = request.model, _opened(request, in_parts)
    return _open_model[1]


def _opened(request: CompileRequest, in_parts: bool) -> OpenedModel:
    load_intrinsics(request.target.kind)
    return opened_model(
        request.model,
        request.target,
        Path(request.scratch),
        in_parts=in_parts,
    )


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


def _build(request: BuildModel) -> Built | NoParts:
    global _last_build  # noqa: PLW0603 -- the state of this process
    require_tiles(request.precision, request.target)
    target = tvm_target(request.target)
    if request.in_parts is not None:
        return _build_in_parts(request, request.in_parts, target)
    opened = _open_whole(request)
    if request.is_whole and request.target.kind == "llvm":
        require_small(opened.functions, target)
    _last_build = build_model(request, opened, target)
    return _last_build.built


def _open_whole(request: BuildModel) -> OpenModel:
    opened = _open(request, in_parts=False)
    if isinstance(opened, SplitModel):
        raise UnsupportedModelError(opened.reason)
    return opened


def _mend(request: MendBuild) -> Mended:
    if _last_build is None or request.build.in_parts is not None:
        return Mended()
    target = tvm_target(request.build.target)
    return mended_build(request, _last_build, _open_whole(request.build), target)


def _build_in_parts(request: BuildModel, how: InParts, target: ResolvedTarget) -> Built | NoParts:
    if request.how is not None and request.how.compiled:
        try:
            known = _open_model[1] if _open_model and _open_model[0] == request.model else None
            place = Path(request.scratch)
            load_intrinsics(request.target.kind)
            split = opened_as(request.model, request.target, place, request.how, known)
        except UnsupportedModelError:
            pass  # what is remembered is of another model
        else:
            return build_parts(request, how, split, target)
    return _build_fastest_parts(msgspec.structs.replace(request, how=None), how, target)


def _build_fastest_parts(
    request: BuildModel, how: InParts, target: ResolvedTarget
) -> Built | NoParts:
    if how.whole and not is_slower(request, how):
        return NoParts()
    try:
        opened = _open(request)
        if isinstance(opened, OpenModel) and (how.whole or how.elected):
            opened = cut_open(opened, request.model, request.target, Path(request.scratch))
    except UnsupportedModelError:
        return NoParts()
    if isinstance(opened, SplitModel):
        return build_parts(request, how, opened, target)
    return NoParts()
