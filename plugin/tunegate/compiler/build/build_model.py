"""Builds a model from records: the best schedule that replays for each kernel, linked and
described.

A schedule must also beat the default one inside the model. A kernel can be fast alone and slow
where its data comes from elsewhere, and nobody has timed a neighbour's schedule. (Gibson & Cano,
PACT 2022, see this difference too; a replication that did not check ended slower than untuned.)
"""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import tvm
from tvm import relax

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.candidates import FLOAT32, LAUNCH
from tunegate.artifacts.tasks import UNMEASURED
from tunegate.compiler.build.functions import ModelFunction
from tunegate.compiler.cuda_text import change_texts
from tunegate.compiler.forms import LIBRARY, Linked, form_for
from tunegate.compiler.importing.own_kernels import with_infinite_extremes
from tunegate.compiler.layouts.packing import fold_packing
from tunegate.compiler.loader import device_exists, is_faster_whole, slower_in_model
from tunegate.compiler.low_precision import lower_kernels
from tunegate.compiler.opening import OpenModel
from tunegate.compiler.schedules import default_schedule, schedule_choice
from tunegate.compiler.schedules.vector_functions import vectorize_elementary_functions
from tunegate.compiler.targets import ResolvedTarget, threads_of
from tunegate.compiler.versions import toolchain
from tunegate.config import RUNTIME_ARTIFACT
from tunegate.models.inputs.drawn_inputs import draw_inputs
from tunegate.models.prepared import PreparedModel
from tunegate.models.saved_model import file_digests
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor
from tunegate.tune.compiler_protocol import BuildModel, Built, BuiltFunction, RunningKernel
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_cache.format.records import WorkloadKey


class ModelBuild(NamedTuple):
    """A linked model, and the schedules that its kernels have."""

    built: Built
    choices: list[schedule_choice.ScheduleChoice]


def build_model(request: BuildModel, model: OpenModel, target: ResolvedTarget) -> ModelBuild:
    """Links the model into the request's directory."""
    start = time.monotonic()
    inputs = draw_inputs(model.prepared, request.inputs, request.model.path).tensors
    choices = [_choose_schedule(f, request, model, target) for f in model.functions]
    slower = known_slower(request, model, target, choices)
    if request.how is not None:
        choices = schedule_choice.as_before(choices, request.how, target.key)
    remaining_choices = schedule_choice.without_schedules(choices, slower)
    result = link_model(request, model, target, remaining_choices, inputs)
    lower = {function.function for function in result.functions if function.source == "tiles"}
    trial_choices, linking = (
        schedule_choice.without_schedules(remaining_choices, lower),
        _linking(request, model, target),
    )
    slow_kernels = slower_ones(request, model, trial_choices, inputs, linking)
    if slow_kernels:
        other = msgspec.structs.replace(request, directory=f"{request.scratch}/without-slower")
        without = schedule_choice.without_schedules(remaining_choices, slow_kernels)
        new_result = link_model(other, model, target, without, inputs)
        if is_faster_tried(request, Path(other.directory) / LIBRARY, inputs):
            model.known.forgive(slow_kernels)  # one by one they are slower, together they are not
            slow_kernels = frozenset()
        else:
            shutil.rmtree(request.directory)
            shutil.move(other.directory, request.directory)
            remaining_choices, result = without, new_result
    slow_kernels |= slower
    labels = sorted(c.function.label for c in choices if c.function.name in slow_kernels)
    seconds = time.monotonic() - start
    return ModelBuild(
        msgspec.structs.replace(result, seconds=seconds, dropped=tuple(labels)), remaining_choices
    )


def _linking(request: BuildModel, model: OpenModel, target: ResolvedTarget) -> Linking:
    """Returns what links the float32 kernels."""
    plain = lower_kernels.TileKernels({}, target.target)

    def link(choices: Sequence[schedule_choice.ScheduleChoice], directory: Path) -> Path:
        link_kernels(
            model, schedule_choice.apply_choices(model.module, choices), plain, directory, request
        )
        return directory / LIBRARY

    return Linking(Path(request.directory) / LIBRARY, link)


def _choose_schedule(
    function: ModelFunction, request: BuildModel, model: OpenModel, target: ResolvedTarget
) -> schedule_choice.ScheduleChoice:
    records = request.records.get(function.workload.digest, ())
    source = schedule_choice.source_of(function, request)
    choice: schedule_choice.ScheduleChoice = model.known.choose_once(
        function.name,
        (records, source),
        lambda: schedule_choice.chosen_schedule(function, request.records, target, source),
    )
    return choice


def link_model(
    request: BuildModel,
    model: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[schedule_choice.ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
) -> Built:
    """Returns the model with exactly these schedules, in the request's directory."""
    start = time.monotonic()
    lower = lower_kernels.tile_kernels(model.module, choices, target, request.precision)
    choices = schedule_choice.without_schedules(choices, lower.kernels)
    module = schedule_choice.apply_choices(model.module, choices)
    outputs = _output_tensors(module, model.prepared.outputs)
    has_schedules = any(choice.main is not None for choice in choices)
    plain = model.module if has_schedules else module
    parts = Finished(model, module, plain, inputs, outputs, lower)
    linked = link(parts, request)
    functions = [_built_function(c, target, request, lower.kernels) for c in choices]
    key = _build_key(model.prepared, target, functions, request, lower.multiply)
    _write_artifact(request, parts, target, functions, key)
    return Built(
        key=key,
        reference=str(model.prepared.original),
        functions=tuple(functions),
        size_bytes=linked.size_bytes,
        seconds=time.monotonic() - start,
        inputs=tuple(each.as_reported() for each in inputs),
        how=HowBuilt(
            kept=tuple(sorted({mark_of(f.rid) for f in functions if f.rid} | {*linked.decided}))
        ),
    )


def _built_function(
    choice: schedule_choice.ScheduleChoice,
    target: ResolvedTarget,
    request: BuildModel,
    lower: Collection[str],
) -> BuiltFunction:
    function, record, schedule = choice.function, choice.record, choice.schedule
    is_lower = function.name in lower
    key = WorkloadKey(function.workload.digest, target.key)
    source = schedule_choice.source_of(function, request) if choice.picked is None else "prior"
    is_own = record is not None and record.key == key and source not in UNMEASURED
    return BuiltFunction(
        key=key,
        name=function.label,
        function=str(function.name),
        weight=function.weight,
        source="tiles" if is_lower else source if schedule is not None else "default",
        rid=schedule_choice.record_id(key, schedule) if schedule is not None else "",
        ms=record.median_ms if record is not None and is_own else None,
        verified=is_own or (record is None and schedule is None),
        algorithm=function.algorithm,
    )


def _build_key(
    prepared_model: PreparedModel,
    target: ResolvedTarget,
    functions: list[BuiltFunction],
    request: BuildModel,
    multiply: str,
) -> str:
    """Returns a digest of code and weights: two builds with one key need no measuring."""
    artifact = request.target.artifact
    parts = {
        "model": file_digests(prepared_model.optimized),
        "target": target.attributes,
        "toolchain": toolchain(),
        "defaults": default_schedule.DEFAULTS_VERSION,
        "schedules": sorted({(f.key.workload, f.rid) for f in functions}),
        **({"cuda-graphs": True} if request.cuda_graphs else {}),
        **({"artifact": artifact} if artifact != RUNTIME_ARTIFACT else {}),
        **({LAUNCH: request.launch} if request.launch else {}),
        **lower_kernels.key_parts(request.precision, functions, multiply),
    }
    return digest_of_document(parts)


def _write_artifact(
    request: BuildModel,
    parts: Finished,
    target: ResolvedTarget,
    functions: list[BuiltFunction],
    key: str,
) -> None:
    form = form_for(request.target, request.settings)
    file, entry = (form.file, form.entry) if form is not None else (LIBRARY, "main")
    ArtifactFile(
        runtime="tvm",
        variant=request.variant,
        settings=request.settings,
        file=file,
        entry=entry,
        inputs=parts.inputs,
        outputs=parts.outputs,
        threads=threads_of(target.target),
        device="cuda" if target.attributes["kind"] == "cuda" else "cpu",
        model=request.model.path,
        key=key,
        target=msgspec.to_builtins(target.attributes),
        toolchain=msgspec.to_builtins(toolchain()),
        tasks=msgspec.to_builtins(functions),
    ).write(Path(request.directory))


def _output_tensors(module: Any, names: Mapping[int, str] | tuple[str, ...]) -> tuple[Any, ...]:
    kind = module["main"].ret_ty
    kinds = kind.fields if hasattr(kind, "fields") else [kind]
    return tuple(
        ArtifactTensor(names[i], tuple(int(n) for n in k.shape.values), str(k.dtype.dtype))
        for i, k in enumerate(kinds)
    )


# Writes a scheduled model as the file that is loaded: a library for TVM's virtual machine, or what
# a form makes of it.


class Finished(NamedTuple):
    """A linked build and its inputs. `plain` is the module without schedules (`module` itself if it
    has none)."""

    opened: OpenModel
    module: Any
    plain: Any
    inputs: tuple[ArtifactTensor, ...]
    outputs: tuple[ArtifactTensor, ...]
    lower: lower_kernels.TileKernels

    @property
    def names(self) -> tuple[list[str], list[str]]:
        """The names of the inputs and of the outputs."""
        return [each.name for each in self.inputs], [output.name for output in self.outputs]


def link(finished: Finished, request: BuildModel) -> Linked:
    """Writes the file into the request's directory."""
    form = form_for(request.target, request.settings)
    if form is not None:
        return form.link(finished, request)
    directory = Path(request.directory)
    lower = finished.lower
    return Linked(link_kernels(finished.opened, finished.module, lower, directory, request))


def link_kernels(
    model: OpenModel,
    module: Any,
    lower: lower_kernels.TileKernels,
    directory: Path,
    request: BuildModel,
) -> int:
    """Links the library of a module in which each kernel is a launch. CPU kernels are compiled once
    per open model."""
    module = with_defaults(module, lower, request)
    if str(lower.target.kind.name) != "cuda":
        into = Path(request.scratch) / "kernels"
        tiles = dict.fromkeys(lower.kernels, lower.tiles)
        executable, files = model.objects.executable(module, lower.target, tiles, into)
        return export_library(executable, directory, files)
    change_texts()
    # Without a GPU the pass finds nothing to capture.
    graphs = {"relax.backend.use_cuda_graph": request.cuda_graphs}
    with lower.target, tvm.transform.PassContext(opt_level=3, config=graphs):
        executable = relax.build(module, target=lower.target)
    return export_library(executable, directory)


def with_defaults(module: Any, lower: lower_kernels.TileKernels, request: BuildModel) -> Any:
    """Returns the module with a default schedule for each kernel that has no other. On a CPU the
    maximum of a row of minus infinity is minus infinity."""
    vectorize_elementary_functions()
    with lower.target, tvm.transform.PassContext(opt_level=3):
        if not request.keeps_constants:
            module = default_schedule.with_packing_schedules(module, lower.target, lower.kernels)
        scheduled = default_schedule.with_default_schedule(
            lower_kernels.with_tiles(fold_packing(module), lower.kernels), lower.target
        )
    is_for_cuda = str(lower.target.kind.name) == "cuda"
    return scheduled if is_for_cuda else with_infinite_extremes(scheduled)


def export_library(executable: Any, directory: Path, files: Sequence[Path] = ()) -> int:
    """Writes a library that contains these files, and returns its size in bytes."""
    directory.mkdir(parents=True, exist_ok=True)
    library = directory / LIBRARY
    executable.export_library(str(library), addons=[str(each) for each in files])
    return library.stat().st_size


# Times schedules against the default ones inside the model: kernel by kernel, then the whole
# model. A kernel that is timed alone finds its inputs in the cache, and no other layout beside it.

_TRIED_LIBRARY = "with-tried.so"


class Linking(NamedTuple):
    """`library` is the build's; `link` links kernels with given schedules into a directory and
    returns their library."""

    library: Path
    link: Callable[[Sequence[schedule_choice.ScheduleChoice], Path], Path]


def slower_ones(
    request: BuildModel,
    model: OpenModel,
    choices: Sequence[schedule_choice.ScheduleChoice],
    inputs: tuple[ArtifactTensor, ...],
    linking: Linking,
) -> frozenset[str]:
    """Returns the kernels whose schedule is slower inside the model than the default one."""
    trials = {choice.function.name for choice in choices if _is_tried(choice, request, model)}
    if request.how is not None or not trials or not device_exists(request.target.kind):
        return frozenset()
    without = schedule_choice.without_schedules(choices, trials)
    beside = linking.link(without, Path(request.scratch) / "without-tried")
    # A path that was loaded once keeps giving the same library, and the model may be linked there
    # again.
    library = Path(request.scratch) / _TRIED_LIBRARY
    if _has_other_files(request):
        library = linking.link(choices, library)
    else:
        shutil.copyfile(linking.library, library)
    workloads = {c.function.name: c.function.workload.digest for c in choices}
    with closing(RunningKernel(Path(request.scratch))) as running:
        slower = slower_in_model(
            library,
            beside,
            inputs=inputs,
            kernels=trials,
            kind=request.target.kind,
            seed=request.seed,
            running=lambda name: running.note(workloads[name] if name in trials else ""),
        )
    for choice in choices:
        if (name := choice.function.name) in trials:
            model.known.remember_speed(name, choice.schedule, slower=name in slower)
    return slower


def known_slower(
    request: BuildModel,
    model: OpenModel,
    target: ResolvedTarget,
    choices: Sequence[schedule_choice.ScheduleChoice],
) -> frozenset[str]:
    """Returns the kernels whose schedule an earlier build found slower inside the model, without
    those that tiles replace."""
    if request.how is not None:
        return frozenset()
    slower = {choice.function.name for choice in choices if _is_slower(choice, model)}
    if slower and request.precision != FLOAT32:
        slower -= lower_kernels.tile_kernels(
            model.module, choices, target, request.precision
        ).kernels.keys()
    return frozenset(slower)


def _is_slower(choice: schedule_choice.ScheduleChoice, model: OpenModel) -> bool | None:
    return model.known.is_slower(choice.function.name, choice.schedule)


def _is_tried(
    choice: schedule_choice.ScheduleChoice, request: BuildModel, model: OpenModel
) -> bool:
    """Returns whether to time the schedule against the default one. On a GPU a measured schedule is
    not tried: a kernel runs in a model there as it runs alone."""
    if choice.main is None or choice.function.workload.digest in request.settled:
        return False
    if _is_slower(choice, model) is not None:
        return False
    is_measured = schedule_choice.source_of(choice.function, request) not in UNMEASURED
    return request.target.kind == "llvm" or not is_measured


def is_faster_tried(request: BuildModel, without: Path, inputs: Sequence[ArtifactTensor]) -> bool:
    """Returns whether the model is faster with the tried schedules than in this library. Only CPU
    libraries are compared: a GPU computes on while it is timed."""
    if _has_other_files(request) or request.target.kind != "llvm":
        return False
    library = Path(request.scratch) / _TRIED_LIBRARY
    return is_faster_whole(library, without, inputs=inputs, seed=request.seed)


def _has_other_files(request: BuildModel) -> bool:
    form = form_for(request.target, request.settings)
    return form is not None or request.precision != FLOAT32
