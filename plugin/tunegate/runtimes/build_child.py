"""The child that makes an artifact for a runtime that does not compile ahead.

Runtimes parse what a pull request brings; whatever breaks one breaks only this process.
"""

import dataclasses
import time
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import onnx

from tunegate.artifacts.artifact_io import digest_of_document
from tunegate.artifacts.builds import NumericCheck, SampledErrors
from tunegate.artifacts.candidates import FLOAT32, PRECISION
from tunegate.errors import ModelError, NotOfferedError, TunegateError
from tunegate.models.graph import SHOWN_OPERATORS, has_generator
from tunegate.models.inputs.drawn_inputs import Drawing, TooSlowError, base_runs, draw_inputs
from tunegate.models.operator_libraries import library_files
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.beside_base import lines_beside_base
from tunegate.models.reference.comparison import (
    RANDOM,
    DidNotRun,
    Reference,
    compare_outputs,
    kind,
)
from tunegate.models.reference.error_samples import sampled_errors
from tunegate.models.reference.onnx_runtime import error_line, use_libraries
from tunegate.models.reference.session import ReferenceSession
from tunegate.models.seeded_inputs import calibration, seeded_inputs
from tunegate.regular_files import lacked_room
from tunegate.runtimes.builder import Refused, WriteArtifact, WriteReply, WrittenBuild
from tunegate.runtimes.registry import has_notes, runtime_named, saves
from tunegate.runtimes.runtime import Loaded, SavingRuntime
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor, files_in
from tunegate.system.processes.memory_limit import lacked_memory, memory_problem

Request = WriteArtifact


def handle_request(request: WriteArtifact) -> WriteReply:
    """Serves one request. A model that the runtime cannot run is a reply, not a crash."""
    try:
        runtime = runtime_named(request.runtime)
        if not saves(runtime):
            return Refused(f"{request.path}: {runtime.title} is not asked to save models.")
        prepared = prepare(
            Path(request.file), shapes=request.shapes, into=Path(request.scratch), path=request.path
        )
    except TunegateError as error:
        return _refused(str(error), error)
    reply = _write_or_refuse(runtime, prepared, request)
    operators = prepared.custom_operators[:SHOWN_OPERATORS]
    if not isinstance(reply, Refused) or not operators or request.libraries:
        return reply
    text = (
        f"{reply.reason} {', '.join(operators)} may be of a library: name it under "
        "custom-operators, which counts once merged."
    )
    return msgspec.structs.replace(reply, reason=text)


def _write_or_refuse(
    runtime: SavingRuntime, prepared: PreparedModel, request: WriteArtifact
) -> WriteReply:
    try:
        use_libraries(library_files(request.libraries if prepared.custom_operators else ()))
        return _write_artifact(runtime, prepared, request)
    except NotOfferedError as error:
        precision = request.settings.get(PRECISION, FLOAT32)
        text = f"{request.path}: {runtime.title} does not offer {precision}: {error}."
        return _refused(text, error)
    except ModelError as error:
        is_too_slow = isinstance(error, TooSlowError)
        return msgspec.structs.replace(_refused(str(error), error), is_too_slow=is_too_slow)
    except Exception as error:  # noqa: BLE001 -- runtimes' errors have no common base class
        problem = memory_problem(error)
        problem = problem or f"{runtime.title} cannot run the model ({error_line(error)})"
        return _refused(f"{request.path}: {problem}.", error)


def _refused(reason: str, error: Exception) -> Refused:
    return Refused(reason, memory=lacked_memory(error), room=lacked_room(error))


def _write_artifact(
    runtime: SavingRuntime, prepared: PreparedModel, request: WriteArtifact
) -> WrittenBuild | Refused:
    begin = time.monotonic()
    directory = Path(request.directory)
    directory.mkdir(parents=True, exist_ok=True)
    # Draw the inputs, save the model, and describe the artifact.
    drawing = draw_inputs(prepared, request.inputs, request.path)
    inputs = drawing.tensors
    prepared, other_cases = _add_calibration(prepared, inputs, request)
    file = runtime.save(prepared, directory, request.settings)
    artifact = ArtifactFile(
        runtime=runtime.name,
        variant=request.variant,
        settings=request.settings,
        file=file,
        inputs=inputs,
        outputs=(),
        threads=request.threads,
        device=request.device,
        model=request.path,
        toolchain=dict(runtime.versions()),
        libraries=tuple(x.sha256 for x in request.libraries if prepared.custom_operators),
    )
    # A first run tells the shapes and types of the outputs.
    files = files_in(directory)
    key = _key(files, artifact, request)
    loaded = runtime.load(directory, artifact)
    outputs, notes = _first_run(runtime.title, loaded, prepared, artifact, request)
    artifact = msgspec.structs.replace(artifact, outputs=outputs, key=key)
    opened = _Opened(runtime, directory, artifact, loaded, prepared, request, drawing.session)
    # Notes that only the reference makes.
    if request.is_reference and not request.samples:
        if request.inputs.base:
            base, seed = Path(request.inputs.base), request.seeds[0]
            notes = (*notes, *lines_beside_base(base, prepared.original, inputs, seed))
        own = opened.compare(with_own_noise=False)
        notes = (*notes, *_wrong_by_itself(runtime.title, own))
        notes = (*notes, *_dull(drawing, request))
    # Check its numbers, or sample its errors. `artifact.json` is written last.
    outcome = _check_or_sample(opened, other_cases)
    if isinstance(outcome, DidNotRun):
        unchecked = "its numbers cannot be checked, ONNX Runtime"
        who = unchecked if outcome.of_reference else runtime.title
        text = f"{request.path}: {who} does not run it ({outcome.reason})."
        return Refused(text, memory=outcome.memory)
    check, sampled = outcome
    artifact.write(directory)
    size = sum((directory / name).stat().st_size for name in files)
    return WrittenBuild(
        key=key,
        size_bytes=size,
        seconds=time.monotonic() - begin,
        check=check,
        sampled=sampled,
        inputs=tuple(each.as_reported() for each in artifact.inputs),
        notes=notes,
    )


def _dull(drawing: Drawing, request: WriteArtifact) -> tuple[str, ...]:
    """Returns a line if the drawn inputs show little of what the model does."""
    dull = drawing.outcome.dull if drawing.outcome is not None else ""
    invented = [
        tensor.name for tensor in drawing.tensors if tensor.name not in request.inputs.given
    ]
    if not dull or not invented:
        return ()
    names = ", ".join(invented)
    return (f"on drawn inputs {dull}: give values for {names} under inputs: in tunegate.yaml",)


def _add_calibration(
    prepared: PreparedModel, inputs: tuple[ArtifactTensor, ...], request: WriteArtifact
) -> tuple[PreparedModel, tuple[ArtifactTensor, ...]]:
    """Returns the model with its calibration inputs, and the inputs kept apart from them."""
    if not request.calibration:
        return prepared, inputs
    names = request.inputs.given.keys()
    own_inputs, other_cases = calibration(inputs, names, request.calibration, request.path)
    return dataclasses.replace(prepared, calibration=own_inputs), other_cases


def _first_run(
    title: str,
    model: Loaded,
    prepared: PreparedModel,
    artifact: ArtifactFile,
    request: WriteArtifact,
) -> tuple[tuple[ArtifactTensor, ...], tuple[str, ...]]:
    """Runs one inference. Returns the outputs, whose shapes a graph need not state, and notes on
    how it ran. Raises ModelError if the model loads but does not run on these inputs."""
    feed = seeded_inputs(artifact.inputs, request.seeds[0])
    model.bound(feed)
    try:
        values = model.run(feed)
    except Exception as error:
        # runtimes' errors have no common base class
        raise ModelError(_does_not_run(title, artifact, request, error)) from error
    outputs = tuple(
        ArtifactTensor(name, *kind(value))
        for name, value in zip(prepared.outputs, values, strict=True)
    )
    return outputs, tuple(model.notes()) if has_notes(model) else ()


def _does_not_run(
    title: str, artifact: ArtifactFile, request: WriteArtifact, error: Exception
) -> str:
    """Returns why the artifact does not run: an input that is not a float is likely an index, a
    length or a category, and was invented here. Without one the sizes are wrong."""
    problem = memory_problem(error)
    if problem:
        return f"{artifact.model}: {problem}."
    base = request.inputs.base if request.is_reference else ""
    change = base_runs(base, artifact.model, artifact.inputs, error_line(error))
    if change:
        return change
    invented = [each.name for each in artifact.inputs if "float" not in each.dtype]
    sizes = ", ".join(f"{name} {list(shape)}" for name, shape in request.shapes.items())
    if sizes and not invented:
        return (
            f"{artifact.model}: {title} does not run it at {sizes} ({error_line(error)}). "
            "Give sizes that the model takes under dims: or inputs: in tunegate.yaml."
        )
    names = ", ".join(invented or [each.name for each in artifact.inputs])
    others = ", or other sizes under dims:," if sizes else ""
    return (
        f"{artifact.model}: {title} does not run it on the inputs that were drawn "
        f"({error_line(error)}). Give values for {names} under inputs:{others} in tunegate.yaml."
    )


class _Opened(NamedTuple):
    """A written artifact that is open already, and so may be its reference, the model as written:
    ONNX Runtime takes half a minute to open some models."""

    runtime: SavingRuntime
    directory: Path
    artifact: ArtifactFile
    model: Loaded
    prepared: PreparedModel
    request: WriteArtifact
    session: ReferenceSession | None

    def compare(self, *, with_own_noise: bool = True) -> NumericCheck | DidNotRun:
        """Compares what is open already. A generator goes on with each inference, and may lie in a
        branch that few inputs take: then both are opened anew if their numbers differ. Any other
        build has one try, as one that is wrong now and then is wrong."""
        check = self._compare(self.model, self.session, with_own_noise=with_own_noise)
        if isinstance(check, DidNotRun) or check.passed:
            return check
        if not has_generator(onnx.load(self.prepared.original, load_external_data=False)):
            return check
        again = self.runtime.load(self.directory, self.artifact)
        return self._compare(again, None, with_own_noise=with_own_noise)

    def _compare(
        self, model: Loaded, session: ReferenceSession | None, *, with_own_noise: bool
    ) -> NumericCheck | DidNotRun:
        inputs, seeds = self.artifact.inputs, self.request.seeds
        reference = partial(Reference, self.prepared.original, inputs, seeds, session)
        return compare_outputs(model.run, reference, self.artifact, with_own_noise=with_own_noise)


def _check_or_sample(
    opened: _Opened, held_out: Sequence[ArtifactTensor]
) -> tuple[NumericCheck | None, SampledErrors | None] | DidNotRun:
    """Returns the artifact's check, or samples of its error if requested, on inputs kept from
    calibration; neither for the reference."""
    prepared, request = opened.prepared, opened.request
    if request.samples:
        errors = sampled_errors(
            opened.model.run,
            prepared.original,
            held_out,
            prepared.outputs,
            request.samples,
            cases=request.cases,
        )
        return errors if isinstance(errors, DidNotRun) else (None, errors)
    check = None if request.is_reference else opened.compare()
    return check if isinstance(check, DidNotRun) else (check, None)


def _wrong_by_itself(title: str, check: NumericCheck | DidNotRun) -> tuple[str, ...]:
    """Returns a line if the reference's own optimizations give other numbers than the model as
    written: production gets them, whatever else ships."""
    if isinstance(check, DidNotRun) or check.passed:
        return ()
    if check.detail == RANDOM:
        return (RANDOM,)
    return (f"{title} computes another model than is written: {check.detail}",)


def _key(files: Mapping[str, str], artifact: ArtifactFile, request: WriteArtifact) -> str:
    """Returns a key: equal keys mean the same model run in the same way, which needs no
    measuring."""
    versions = artifact.toolchain
    inputs = [
        {"name": t.name, "shape": t.shape, "dtype": t.dtype} | ({"form": t.form} if t.form else {})
        for t in artifact.inputs
    ]
    parts: dict[str, Any] = {"files": files, "threads": request.threads, "inputs": inputs}
    parts |= versions
    if request.runtime not in versions:
        parts["runtime"] = request.runtime
    if request.device != "cpu":
        parts["device"] = request.device
    if artifact.libraries:
        parts["libraries"] = artifact.libraries
    if request.settings:
        parts["settings"] = request.settings
    return digest_of_document(parts)
