"""Builds an engine from an ONNX file, for the first visible GPU.

Networks are strongly typed: each operator computes in the precision of the file, and no other. TF32
is the only freedom, and a setting decides it. No timing cache and no foreign engine is read: an
engine is code.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from tunegate.artifacts.candidates import FLOAT32, PRECISION
from tunegate.errors import UnsupportedModelError
from tunegate.runtimes.cuda_variants import TFLOAT32
from tunegate.runtimes.tensorrt.library import Log, tensorrt
from tunegate.runtimes.tensorrt.runtime import engine_refusal

_TIMED = 8
"""Timings per kernel before one is chosen: with more, two builds of a model differ less."""


def built_engine(model: Path, settings: Mapping[str, str]) -> bytes:
    """Builds an engine and returns its bytes."""
    log = Log()
    try:
        builder = tensorrt.Builder(log)
    except TypeError as error:  # no device, or no driver
        raise _unsupported(log.errors or [str(error)]) from error
    typed = 1 << int(tensorrt.NetworkDefinitionCreationFlag.STRONGLY_TYPED)
    network = builder.create_network(typed)
    parser = tensorrt.OnnxParser(network, log)
    if not parser.parse_from_file(str(model)):
        errors = [parser.get_error(each).desc() for each in range(parser.num_errors)]
        raise _unsupported(errors or log.errors)
    plan = builder.build_serialized_network(network, _config(builder, settings))
    if plan is None:
        raise _unsupported(log.errors)
    return bytes(plan)


def _config(builder: Any, settings: Mapping[str, str]) -> Any:
    config = builder.create_builder_config()
    if settings.get(PRECISION, FLOAT32) == TFLOAT32:
        config.set_flag(tensorrt.BuilderFlag.TF32)
    else:
        config.clear_flag(tensorrt.BuilderFlag.TF32)
    config.profiling_verbosity = tensorrt.ProfilingVerbosity.DETAILED
    config.avg_timing_iterations = _TIMED
    return config


def _unsupported(said: list[str]) -> UnsupportedModelError:
    return UnsupportedModelError(f"TensorRT {engine_refusal(said)}")
