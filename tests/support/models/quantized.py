"""Models that the building child is asked to write in int8."""

from __future__ import annotations

from pathlib import Path

import onnx

from tests.support.small_onnx import save
from tunegate.artifacts.inputs import NOTHING_KNOWN, InputRule, KnownInputs
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.build_messages import Refused, WriteArtifact, Written

STATIC = {"precision": "int8", "quantization": "static"}
CALIBRATION = tuple(range(100, 132))


def quantized(
    root: Path,
    model: onnx.ModelProto,
    build: tuple[str, str, dict[str, str]],
    samples: tuple[int, ...],
    given: dict[str, InputRule] | None = None,
) -> Written | Refused:
    """`build` is the runtime, the variant and its settings. With `given` rules it is calibrated."""
    runtime, variant, settings = build
    return handle_request(
        WriteArtifact(
            runtime=runtime,
            variant=variant,
            settings=settings,
            is_reference=False,
            file=str(save(model, root / "models" / "m.onnx")),
            path="models/m.onnx",
            shapes={},
            threads=1,
            directory=str(root / "artifact"),
            scratch=str(root / "scratch"),
            seeds=(1, 2),
            inputs=NOTHING_KNOWN if given is None else KnownInputs(given=given),
            samples=samples,
            calibration=() if given is None else CALIBRATION,
        )
    )
