"""The child process that compiles a model: lists its tasks, builds it from records and checks the
build."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TypeVar

from tunegate.artifacts.candidates import FLOAT32
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.compiler.build.build_model import ModelBuild, build_model
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.build.mended_build import check_numbers, mended_build
from tunegate.compiler.forms import form_for
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.low_precision.lower_kernels import require_tiles
from tunegate.compiler.opening import OpenModel, opened_model
from tunegate.compiler.targets import tvm_target
from tunegate.config import TargetConfig
from tunegate.errors import (
    ConfigError,
    NotOfferedError,
    NotOfferedNowError,
    TunegateError,
    UnsupportedModelError,
)
from tunegate.regular_files import lacked_room
from tunegate.system.processes.memory_limit import lacked_memory, memory_problem
from tunegate.tune import compiler_protocol
from tunegate.tune.protocol import Failed, ModelFile
from tunegate_cache.format.records import WorkloadKey

Request = (
    compiler_protocol.CompileRequest | compiler_protocol.CheckArtifact | compiler_protocol.MendBuild
)

_Reply = TypeVar("_Reply")

_open_model: tuple[ModelFile, OpenModel] | None = None
"""The last opened model: the next request is usually about the same one."""
_last_build: ModelBuild | None = None


def handle_request(
    request: Request,
) -> compiler_protocol.CompileReply | compiler_protocol.CheckReply:
    """Serves one request. A model that cannot be compiled is a reply, not a crash."""
    return reply_or_failure(lambda: _serve(request), _path(request), _precision_name(request))


def reply_or_failure(answer: Callable[[], _Reply], path: str, feature: str) -> _Reply | Failed:
    """Returns the reply, or a `Failed` that names the model (`path`), or what TVM does not offer
    (`feature`)."""
    try:
        return answer()
    except ConfigError as error:
        return Failed(str(error), model=False, configuration=True)
    except NotOfferedError as error:
        reason = f"{path}: TVM does not offer {feature}: {error}."
        has_died = isinstance(error, NotOfferedNowError)
        return _failed(error, reason, died=has_died)
    except TunegateError as error:
        is_valid = isinstance(error, UnsupportedModelError)
        return _failed(error, str(error), compiler=is_valid)
    except Exception as error:
        problem = memory_problem(error)
        if not problem:
            raise
        return Failed(f"{path}: {problem}.", model=True, compiler=True, memory=True)


def _failed(error: Exception, reason: str, *, compiler: bool = False, died: bool = False) -> Failed:
    """Returns the failure of a model, with what the machine lacked."""
    memory, room = lacked_memory(error), lacked_room(error)
    return Failed(reason, model=True, compiler=compiler, memory=memory, room=room, died=died)


def _serve(request: Request) -> compiler_protocol.CompileReply | compiler_protocol.CheckReply:
    match request:
        case compiler_protocol.ListTasks():
            return _list_tasks(request)
        case compiler_protocol.BuildModel():
            return _build(request)
        case compiler_protocol.CheckArtifact():
            return check_numbers(request)
        case compiler_protocol.MendBuild():
            return _mend(request)


def _precision_name(request: Request) -> str:
    if not isinstance(request, compiler_protocol.BuildModel):
        return FLOAT32
    form = form_for(request.target, request.settings) if request.launch else None
    return form.title if form is not None else request.precision


def _path(request: Request) -> str:
    match request:
        case compiler_protocol.CheckArtifact(directory=directory):
            return Path(directory).name
        case compiler_protocol.MendBuild(build=build):
            return build.model.path
        case _:
            return request.model.path


def _list_tasks(request: compiler_protocol.ListTasks) -> compiler_protocol.Tasks:
    functions = _open(request).functions
    return compiler_protocol.Tasks(
        tuple(merged_tasks(functions, request.model.path, request.target))
    )


def _open(request: compiler_protocol.CompileRequest) -> OpenModel:
    return open_model(request.model, request.target, Path(request.scratch))


def open_model(model: ModelFile, target: TargetConfig, scratch: Path) -> OpenModel:
    """Opens the model, or returns the open one: a child serves one target only."""
    global _open_model  # noqa: PLW0603 -- the state of this process
    if _open_model is None or _open_model[0] != model:
        load_intrinsics(target.kind)
        _open_model = model, opened_model(model, target, scratch)
    return _open_model[1]


def merged_tasks(
    functions: Sequence[ModelFunction], path: str, target: TargetConfig
) -> list[TuningTask]:
    """Returns the tasks of a model. Functions with the same workload are one task: fusion may give
    the same code two names."""
    own_target = tvm_target(target)
    together: dict[str, list[ModelFunction]] = {}
    for function in functions:
        together.setdefault(function.workload.digest, []).append(function)
    return [
        TuningTask(
            key=WorkloadKey(digest, own_target.key),
            attributes=own_target.export_json(),
            shape=same[0].workload.shape,
            target=target.name,
            operator=same[0].operator,
            dtype=same[0].dtype,
            flops=same[0].flops,
            bytes_moved=same[0].bytes_moved,
            uses=(
                TaskUse(
                    model=path,
                    side="head",
                    weight=sum(f.weight for f in same),
                    name=same[0].label,
                ),
            ),
        )
        for digest, same in together.items()
    ]


def _build(request: compiler_protocol.BuildModel) -> compiler_protocol.Built:
    global _last_build  # noqa: PLW0603 -- the state of this process
    require_tiles(request.precision, request.target)
    target = tvm_target(request.target)
    model = _open(request)
    form = form_for(request.target, request.settings)
    if form is not None:
        form.require(model.functions, target)
    _last_build = build_model(request, model, target)
    return _last_build.built


def _mend(request: compiler_protocol.MendBuild) -> compiler_protocol.Mended:
    if _last_build is None:
        return compiler_protocol.Mended()
    target = tvm_target(request.build.target)
    return mended_build(request, _last_build, _open(request.build), target)
