"""The child that opens a model in parts: lists the tasks of these, builds and checks them."""

from __future__ import annotations

from pathlib import Path

import msgspec

from tunegate.compiler.build.mended_build import check_run
from tunegate.compiler.compile import merged_tasks, reply_or_failure
from tunegate.compiler.intrinsics import load_intrinsics
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.search.stock_database import export_database, import_schedules
from tunegate.compiler.targets import tvm_target
from tunegate.errors import UnsupportedModelError
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.tune.compiler_protocol import (
    BuildModel,
    Built,
    CheckArtifact,
    Checked,
    ExportDatabase,
    Imported,
    ImportSchedules,
    ListTasks,
    Tasks,
)
from tunegate.tune.protocol import Failed, ModelFile
from tunegate_cache.format.how_built import HowBuilt
from tunegate_hybrid.build_parts import build_parts
from tunegate_hybrid.messages import BuildParts, NoParts, PartsReply, PartsRequest
from tunegate_hybrid.open_parts import SplitModel
from tunegate_hybrid.opening import OpenedModel, cut_open, opened_as, opened_in_parts
from tunegate_hybrid.plan_file import PartsPlan
from tunegate_hybrid.program import PartsProgram
from tunegate_hybrid.whole import is_slower

Request = PartsRequest

_open_model: tuple[ModelFile, OpenedModel] | None = None
"""The model that was asked about last: the next question is about the same one."""


def handle_request(request: PartsRequest) -> PartsReply:
    """Serve one request; a model that cannot be compiled is a reply, not a crash."""
    return reply_or_failure(lambda: _answered(request), _path(request), "models in parts")


def _path(request: PartsRequest) -> str:
    match request:
        case BuildParts(build=build):
            return build.model.path
        case CheckArtifact(directory=directory):
            return Path(directory).name
        case _:
            return request.model.path


def _answered(request: PartsRequest) -> PartsReply:
    match request:
        case ListTasks():
            functions = _open(request).functions
            return Tasks(tuple(merged_tasks(functions, request.model.path, request.target)))
        case BuildParts():
            return _build(request)
        case CheckArtifact():
            return _check(request)
        case ExportDatabase():
            target = tvm_target(request.target).target
            functions, at = _open(request).functions, Path(request.directory)
            return export_database(functions, request.records, target, at)
        case ImportSchedules():
            target, functions = tvm_target(request.target), _open(request).functions
            return Imported(tuple(import_schedules(functions, request.foreign, target)))


def _open(request: ListTasks | BuildModel | ExportDatabase | ImportSchedules) -> OpenedModel:
    """A child serves one target only."""
    global _open_model  # noqa: PLW0603 -- the state of this process
    if _open_model is None or _open_model[0] != request.model:
        load_intrinsics(request.target.kind)
        opened = opened_in_parts(request.model, request.target, Path(request.scratch))
        _open_model = request.model, opened
    return _open_model[1]


def _check(request: CheckArtifact) -> Checked | Failed:
    directory = Path(request.directory)
    artifact = ArtifactFile.read(directory)
    program = PartsProgram(directory, PartsPlan.read(directory), artifact.threads)
    return check_run(program.run, artifact, request)


def _build(request: BuildParts) -> Built | NoParts:
    build = request.build
    if build.how is not None and build.how.compiled:
        try:
            split = _cut_as_before(build, build.how)
        except UnsupportedModelError:
            pass  # what is remembered is of another model
        else:
            return build_parts(request, split, tvm_target(build.target))
    fresh = msgspec.structs.replace(build, how=None)
    return _build_fastest(msgspec.structs.replace(request, build=fresh))


def _cut_as_before(build: BuildModel, how: HowBuilt) -> SplitModel:
    known = _open_model[1] if _open_model and _open_model[0] == build.model else None
    load_intrinsics(build.target.kind)
    return opened_as(build.model, build.target, Path(build.scratch), how, known)


def _build_fastest(request: BuildParts) -> Built | NoParts:
    build = request.build
    if request.whole and not is_slower(request):
        return NoParts()
    try:
        opened = _open(build)
        if isinstance(opened, OpenModel) and (request.whole or request.elected):
            opened = cut_open(opened, build.model, build.target, Path(build.scratch))
    except UnsupportedModelError:
        return NoParts()
    if isinstance(opened, SplitModel):
        return build_parts(request, opened, tvm_target(build.target))
    return NoParts()
