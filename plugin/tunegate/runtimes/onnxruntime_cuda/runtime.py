"""ONNX Runtime on NVIDIA GPUs: the options of its CUDA provider, and the runtime itself."""

import shutil
from collections.abc import Collection, Mapping
from pathlib import Path
from typing import Final

from tunegate.artifacts import candidates
from tunegate.config import TargetConfig
from tunegate.models.prepared import PreparedModel
from tunegate.runtimes.runtime import Loaded, SavingRuntime
from tunegate.system.machine.packages import installed_version
from tunegate.system.output.artifact_file import ArtifactFile

# Options of ONNX Runtime's CUDA provider, and the check whether this installation has it.

CUDA: Final = "CUDAExecutionProvider"
PACKAGES: Final = (
    *("onnxruntime-gpu", "nvidia-cudnn-cu13", "nvidia-cublas", "nvidia-cudnn-cu12"),
    "nvidia-cublas-cu12",
)
"""The distributions with its kernels, if they are not installed on the machine."""

_CPU_WHEEL: Final = "onnxruntime"
_INSTALL: Final = (
    "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install 'onnxruntime-gpu[cuda,cudnn]'"
)


def provider_options(settings: Mapping[str, str]) -> dict[str, str]:
    """Returns every option that decides numbers and times; the defaults would compute float32 in
    TF32. The device is the first visible one."""
    return {
        "device_id": "0",
        "use_tf32": "1"
        if settings.get(candidates.PRECISION, candidates.FLOAT32) == candidates.TFLOAT32
        else "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "cudnn_conv_use_max_workspace": "1",
        "do_copy_in_default_stream": "1",
        "enable_cuda_graph": "1" if settings.get(candidates.LAUNCH) == candidates.GRAPH else "0",
    }


def missing_provider() -> str:
    """Returns what this installation lacks and the commands that mend it, '' if nothing."""
    # Asked for targets of CUDA alone, and heavy.
    from tunegate.models.reference.onnx_runtime import onnxruntime  # noqa: PLC0415

    names = (_CPU_WHEEL, "onnxruntime-gpu")
    installed = {name for name in names if installed_version(name)}
    return lacking_wheel(onnxruntime.get_available_providers(), installed)


def lacking_wheel(providers: Collection[str], wheels: Collection[str]) -> str:
    """Returns the same from the imported package's providers and the installed wheels: the CPU and
    GPU wheels have the same files, and the one installed last has overwritten them."""
    if CUDA in providers:
        return ""
    if len(wheels) > 1:
        return f"finds onnxruntime-gpu overwritten by onnxruntime: {_INSTALL}"
    return f"needs onnxruntime-gpu in the place of onnxruntime: {_INSTALL}"


# ONNX Runtime on NVIDIA GPUs: its CUDA provider, in the precision of each candidate.

_MODEL = "model.onnx"


class OnnxRuntimeCuda:
    name, title = "onnxruntime_cuda", "ONNX Runtime on CUDA"

    def unsupported(self, target: TargetConfig) -> str:
        return "is for CUDA devices" if target.kind != "cuda" else missing_provider()

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        return candidates.cuda_variants(target)

    def versions(self) -> Mapping[str, str]:
        """Returns the versions, including the libraries that choose its kernels."""
        if missing_provider():
            return {}
        return {name: version for name in PACKAGES if (version := installed_version(name))}

    def save(self, model: PreparedModel, directory: Path, settings: Mapping[str, str]) -> str:
        """Writes the model, with fixed shapes if possible: a CUDA graph needs them."""
        if settings.get(candidates.PRECISION) == candidates.FLOAT16:
            # Loads what converts, which no process that measures needs.
            from tunegate.models.reference.model_precision import save_float16  # noqa: PLC0415

            save_float16(model, directory / _MODEL)
            return _MODEL
        if model.weights is not None or model.unfixable:
            model.copy_to(directory / _MODEL)
        else:
            shutil.copyfile(model.fixed, directory / _MODEL)
        return _MODEL

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        from tunegate.runtimes.onnxruntime_cuda.model import CudaModel  # noqa: PLC0415

        return CudaModel(directory, artifact)


RUNTIME: SavingRuntime = OnnxRuntimeCuda()
