"""OpenVINO on CPUs: needs no compiler, and takes the model as it is.

Its cache of compiled models is not used: it saves 0.1 s of a launch, and is as large as the model.
"""

from collections.abc import Mapping
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Final

from tunegate.artifacts.candidates import FLOAT32, PRECISION, QUANTIZATION, STATIC
from tunegate.artifacts.inputs import GIVEN, UNLIMITED
from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.runtime import Loaded, SavingRuntime
from tunegate.system.machine.cores import CPU_INFO, lacks_any
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

_MODEL = "model.onnx"
_WIDE_INTEGERS = {"int32", "uint32", "int64", "uint64"}
"""Integers that float32 does not hold."""


class OpenVino:
    name, title = "openvino", "OpenVINO"

    def unsupported(self, target: TargetConfig) -> str:
        if target.kind != "llvm":
            return "is for CPUs"
        if _is_installed(self.name):
            return ""
        return "needs openvino: pip install 'tunegate[openvino]'"

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return variants()

    def versions(self) -> Mapping[str, str]:
        """Returns the versions that decide what runs, including the quantizer's."""
        return {name: version(name) for name in (self.name, OWN) if _is_installed(name)}

    def lacking(self, settings: Mapping[str, str]) -> str:
        return lacking(settings)

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        if problem := lacking(settings):
            raise NotOfferedError(problem)
        if settings.get(QUANTIZER) == OWN:
            if not _is_installed(OWN):
                message = "its own quantizer is not installed: pip install 'tunegate[nncf]'"
                raise NotOfferedError(message)
            from tunegate.runtimes.openvino.own_int8 import save_own  # noqa: PLC0415

            return save_own(model, directory)
        if settings.get(QUANTIZATION) == STATIC:
            # Loads what quantizes, which no process that measures needs.
            from tunegate.models.reference.static_int8 import save_static  # noqa: PLC0415

            save_static(model, directory / _MODEL)
            return _MODEL
        model.copy_to(directory / _MODEL)
        return _MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        inexact = [each.name for each in artifact.inputs if _is_narrowed(each)]
        if inexact:
            message = (
                f"{artifact.model}: OpenVINO computes float64 in float32, and integers in that or "
                f"in 32 bits: values of {', '.join(inexact)} may need more. Give values that you "
                "have under inputs: in tunegate.yaml."
            )
            raise UnsupportedModelError(message)

        from tunegate.runtimes.openvino.model import OpenVinoModel  # noqa: PLC0415

        return OpenVinoModel(directory, artifact)


def _is_narrowed(tensor: ArtifactTensor) -> bool:
    """Returns whether values that nobody has limited, or given, may need more than 32 bits."""
    why = tensor.rule.why if tensor.rule else ""
    if tensor.dtype in _WIDE_INTEGERS:
        return why.endswith(UNLIMITED)
    return tensor.dtype == "float64" and not why.startswith(GIVEN)


def _is_installed(name: str) -> bool:
    return find_spec(name) is not None


RUNTIME: SavingRuntime = OpenVino()


# The precisions that this processor has instructions for. OpenVINO accepts bfloat16 on every
# processor with AVX-512, and then computes in float32 with conversions, so its word alone is not
# enough.

HINTS: Final[Mapping[str, str]] = {FLOAT32: "f32", "bfloat16": "bf16", "float16": "f16"}
"""OpenVINO's names of precisions. An int8 model says where it is quantized; the rest is float32."""

QUANTIZER: Final = "quantizer"
"""The setting for the quantizing tool: ONNX Runtime's if it is absent."""
OWN: Final = "nncf"
"""OpenVINO's own tool."""

_INSTRUCTIONS: Final[Mapping[str, frozenset[str]]] = {
    "bfloat16": frozenset({"avx512_bf16", "amx_bf16"}),
    "float16": frozenset({"avx512_fp16", "amx_fp16"}),
    "int8": frozenset({"avx512_vnni", "avx_vnni", "amx_int8"}),
}


def variants() -> Mapping[str, Mapping[str, str]]:
    """Returns float32 and all other precisions by variant name: one that a processor lacks is
    refused by name."""
    lower = {HINTS[precision]: {PRECISION: precision} for precision in ("bfloat16", "float16")}
    int8 = {PRECISION: "int8", QUANTIZATION: STATIC}
    return {"": {}, **lower, "int8": int8, f"int8.{OWN}": {**int8, QUANTIZER: OWN}}


def lacking(settings: Mapping[str, str], cpu_info: Path = CPU_INFO) -> str:
    """Returns what this processor lacks for a precision, and what it has; '' if nothing is
    missing."""
    return lacks_any(_INSTRUCTIONS.get(settings.get(PRECISION, FLOAT32), ()), cpu_info)
