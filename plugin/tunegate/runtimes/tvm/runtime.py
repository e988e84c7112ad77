"""TVM: models are compiled, and their kernels are tuned."""

import functools
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from tunegate.artifacts.candidates import FLOAT16, PRECISION, TFLOAT32, RuntimeName
from tunegate.artifacts.measurements import Gpu
from tunegate.compiler.forms import installed_forms, loaded_form
from tunegate.config import TargetConfig
from tunegate.ports import Programs
from tunegate.runtimes.runtime import Loaded, OpenCompiler, Step, TuningRuntime
from tunegate.system.machine.health import HealthCheck
from tunegate.system.machine.packages import installed_version
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import variables_for, visible_gpus
from tunegate.system.output.artifact_file import ArtifactFile
from tunegate.system.processes import interpreter
from tunegate.tune.gpu_analysis import SHARED_MEMORY, USUAL_SHARED_MEMORY
from tunegate_cache.format.records import Toolchain

# The child processes of this compiler that the engine drives.

_LIMIT_SECONDS = 60.0
_LEAST_CAPABILITY = 8.0
_LOWER: Mapping[str, Mapping[str, Mapping[str, str]]] = {
    "llvm": {"bf16": {PRECISION: "bfloat16"}, "int8.dynamic": {PRECISION: "int8"}},
    "cuda": {"tf32": {PRECISION: TFLOAT32}, "f16": {PRECISION: FLOAT16}},
}
"""The variants in lower precision, by the target's kind."""


@functools.cache
def gpu_variables() -> Mapping[str, str]:
    """Returns the variables of children that choose kernels for the first visible GPU. A block may
    use more shared memory than the usual 48 KB where a kernel has worked there with it, which is
    tried once."""
    gpus = visible_gpus()
    # sm_75 has 16 KB more, not worth a trial in each run, and CUDA 13 knows no older card.
    if not gpus or float(gpus[0].compute_capability) < _LEAST_CAPABILITY:
        return {}
    usable = tried_kernel(gpus[0]).usable_bytes
    return {SHARED_MEMORY: str(usable)} if usable > USUAL_SHARED_MEMORY else {}


class TriedKernel(NamedTuple):
    """The shared memory that a block of a kernel may use on a GPU, and why a kernel does not run
    there, '' if it does."""

    usable_bytes: int
    failure: str


@functools.cache
def tried_kernel(gpu: Gpu) -> TriedKernel:
    """Builds a kernel for a GPU and runs it there, in a child."""
    variables = {**cuda_variables(), **variables_for(gpu)}
    program = "tunegate.compiler.shared_memory"
    process = interpreter.ask(program, variables=variables, limit_seconds=_LIMIT_SECONDS)
    if process is None:
        return TriedKernel(USUAL_SHARED_MEMORY, f"no answer in {_LIMIT_SECONDS:.0f} s")
    if process.returncode or not process.stdout.strip().isdigit():
        last = process.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
        return TriedKernel(USUAL_SHARED_MEMORY, last[0].strip()[:200])
    return TriedKernel(int(process.stdout), "")


PROGRAMS = Programs(
    searcher="tunegate.compiler.searcher",
    worker="tunegate.compiler.worker",
    gpu_variables=gpu_variables,
)


class Tvm:
    name, title = "tvm", "TVM"
    programs = PROGRAMS

    def unsupported(self, target: TargetConfig) -> str:
        return ""

    def variants(self, target: TargetConfig) -> Mapping[str, Mapping[str, str]]:
        settings: dict[str, Mapping[str, str]] = {"": {}, **_LOWER[target.kind]}
        for form in installed_forms():
            settings |= form.variants(target)
        return settings

    def versions(self) -> Mapping[str, str]:
        from tunegate.runtimes.tvm.health import PINNED  # noqa: PLC0415

        return {name: installed_version(name) for name in PINNED}

    def load(self, directory: Path, artifact: ArtifactFile) -> Loaded:
        if (loaded := loaded_form(directory, artifact)) is not None:
            return loaded
        from tunegate.compiler.runtime_alone import import_runtime, set_threads  # noqa: PLC0415

        set_threads(artifact.threads)
        if artifact.device == "cpu":  # that of a GPU needs what TVM loads with the compiler
            import_runtime()
        from tunegate.compiler.loader import TvmArtifact  # noqa: PLC0415

        return TvmArtifact(directory, artifact)

    def toolchain(self) -> Toolchain:
        from tunegate.compiler.versions import toolchain  # noqa: PLC0415

        return toolchain()

    def compiler(self, scratch: Path, *, seed: int, limit_seconds: float) -> OpenCompiler:
        from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler  # noqa: PLC0415

        return MetaScheduleCompiler(scratch, seed=seed, limit_seconds=limit_seconds)

    def require(self, targets: Sequence[TargetConfig], step: Step, instead: RuntimeName) -> None:
        from tunegate.runtimes.tvm.health import require  # noqa: PLC0415

        require(targets, step, instead)

    def checks(self, targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
        from tunegate.runtimes.tvm.health import compiler_checks  # noqa: PLC0415

        return compiler_checks(targets)


RUNTIME: TuningRuntime = Tvm()
