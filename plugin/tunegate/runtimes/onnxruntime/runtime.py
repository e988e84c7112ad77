"""ONNX Runtime on CPUs: its sessions, its artifact, and the runtime itself."""

import logging
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from pathlib import Path
from typing import Any

from tunegate.artifacts.candidates import PRECISION, QUANTIZATION, STATIC
from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError
from tunegate.models import narrow_types
from tunegate.models.prepared import PreparedModel
from tunegate.models.reference.onnx_runtime import FallingBack, open_session, timed_options
from tunegate.runtimes.runtime import Loaded, SavingRuntime, Watched
from tunegate.system.output.artifact_file import ArtifactFile

# A session of ONNX Runtime, as models are shipped and measured.

_ERRORS = 3
_QUANTIZED = "MatMulInteger"


def open_model_session(
    model: Path, threads: int, profile: Path | None = None, optimized: Path | None = None
) -> Any:
    """Opens a session with all optimizations, one inference at a time; its operators' times go to
    files that begin with `profile`, and the graph that it runs to `optimized`."""
    options = timed_options(threads)
    if profile is not None:
        options.enable_profiling = True
        options.profile_file_prefix = str(profile)
    if optimized is not None:
        options.optimized_model_filepath = str(optimized)
        options.log_severity_level = _ERRORS  # a graph of this machine is no news here
    return open_session(model, options, ["CPUExecutionProvider"]).session


def _save_dynamic(model: PreparedModel, file: Path) -> None:
    """Quantizes the matrix products to int8 with ONNX Runtime's own tool: weights here, by column,
    and activations in each inference, by their range in it. Raises NotOfferedError if the model
    would not change, or is too large."""
    # Loads what quantizes, which no process that measures needs.
    import onnx  # noqa: PLC0415

    from tunegate.models.reference.onnx_runtime import quantization  # noqa: PLC0415
    from tunegate.system.onnx_scan import nodes_of  # noqa: PLC0415

    if model.weights is not None:
        raise NotOfferedError("its tool quantizes no model of 2 GB")
    # Advice to optimize the model first: the session does.
    logging.getLogger().setLevel(logging.ERROR)
    # Not by path: the tool would write beside the user's file.
    tool = quantization()
    tool.quantize_dynamic(
        onnx.load(model.original),
        file,
        op_types_to_quantize=["MatMul"],
        per_channel=True,
        weight_type=tool.QuantType.QInt8,
        extra_options={"MatMulConstBOnly": True},
    )
    quantized = onnx.load(file, load_external_data=False)
    if not any(node.op_type == _QUANTIZED for node in nodes_of(quantized)):
        raise NotOfferedError("no matrix product has constant weights to quantize")


# An ONNX file as an artifact, in the process that runs it.


class OnnxArtifact:
    """An ONNX file, loaded in this process."""

    def __init__(self, directory: Path, artifact: ArtifactFile) -> None:
        self._file, self._threads = directory / artifact.file, artifact.threads
        self._has_run = False

    def run(self, feed: Mapping[str, Any]) -> Sequence[Any]:
        outputs = self._session.run(feed)
        self._has_run = True
        return outputs

    def bound(self, feed: Mapping[str, Any]) -> Callable[[], object]:
        """Opens the session, and leaves all memory that an inference takes to the first one. That
        one may fall back to another session, which is then the one that is timed."""
        session = self._session
        inference: Callable[[], object] | None = None

        def infer() -> object:
            nonlocal inference
            if inference is None:
                if not self._has_run:
                    self.run(feed)
                inference = narrow_types.bind_inference(session.opened.session, feed)
            return inference()

        return infer

    def watched(self, feed: Mapping[str, Any]) -> Watched:
        # Reads the graph with the `onnx` package, which would double the time to start.
        from tunegate.runtimes.onnxruntime.operator_profile import ProfiledSession  # noqa: PLC0415

        return ProfiledSession(
            self._file, feed, partial(open_model_session, self._file, self._threads)
        )

    def notes(self) -> Sequence[str]:
        """Returns how its session was opened, if that was not plain."""
        note = self._session.opened.note
        return [note] if note else []

    @cached_property
    def _session(self) -> FallingBack:
        return FallingBack(self._file, partial(timed_options, self._threads))


# ONNX Runtime on CPUs: needs no compiler, and takes the model as it is or in int8.

MODEL = "model.onnx"


class OnnxRuntime:
    name, title = "onnxruntime", "ONNX Runtime"

    def unsupported(self, target: TargetConfig) -> str:
        return "" if target.kind == "llvm" else "is for CPUs"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return {
            "": {},
            "int8": {PRECISION: "int8", QUANTIZATION: STATIC},
            "int8.dynamic": {PRECISION: "int8"},
        }

    def versions(self) -> Mapping[str, str]:
        from tunegate.models.reference.onnx_runtime import onnxruntime  # noqa: PLC0415

        return {self.name: onnxruntime.__version__}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        if settings.get(QUANTIZATION) == STATIC:
            # Loads what quantizes, which no process that measures needs.
            from tunegate.models.reference.static_int8 import save_static  # noqa: PLC0415

            save_static(model, directory / MODEL)
        elif PRECISION in settings:
            _save_dynamic(model, directory / MODEL)
        else:
            model.copy_to(directory / MODEL)
        return MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        return OnnxArtifact(directory, artifact)


RUNTIME: SavingRuntime = OnnxRuntime()
