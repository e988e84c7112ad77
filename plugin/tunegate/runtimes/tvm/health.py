"""TVM's requirements on a machine, each as a check with its detail."""

import shutil
from collections.abc import Iterator, Sequence
from importlib.util import find_spec

from tunegate.artifacts.candidates import RuntimeName
from tunegate.artifacts.measurements import Gpu
from tunegate.compiler.forms import form_for, installed_forms
from tunegate.config import TargetConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.runtimes.runtime import Step
from tunegate.runtimes.tvm.runtime import tried_kernel
from tunegate.system.machine.device_lock import claim_on, held_device
from tunegate.system.machine.health import HealthCheck
from tunegate.system.machine.packages import bytecode_check, installed_version
from tunegate.system.nvidia.cuda_toolkit import cuda_variables
from tunegate.system.nvidia.gpus import visible_gpus
from tunegate.system.processes import interpreter


def compiler_checks(targets: Sequence[TargetConfig]) -> Iterator[HealthCheck]:
    """Yields the versions, whether byte code is kept, the compiler's self-test, a kernel tried on
    each GPU for targets that have some, and the linker."""
    yield from map(_version_check, PINNED)
    bytecode = bytecode_check("tvm")
    if bytecode is not None:
        yield bytecode
    failure = compiler_failure()
    passed = "wrote a database, built a function"
    yield HealthCheck("compiler self-test", ok=not failure, detail=failure or passed)
    if cuda_variables() and (not targets or any(each.kind == "cuda" for each in targets)):
        yield from map(_kernel_check, visible_gpus())
    program = linker()
    missing = f"none of {', '.join(LINKERS)}: install one, builds are linked with it"
    yield HealthCheck("linker", ok=program is not None, detail=program or missing)
    for form in installed_forms():
        yield from form.checks()


def _kernel_check(gpu: Gpu) -> HealthCheck:
    """Tries a kernel while nobody measures on the GPU."""
    try:
        with held_device(claim_on(gpu.uuid, wait_seconds=1)):
            usable_bytes, failure = tried_kernel(gpu)
    except EnvironmentUnfitError as error:
        detail = f"{gpu.name} ({gpu.uuid}): not tried. {error}"
        return HealthCheck("kernel on a GPU", ok=True, detail=detail)
    passed = f"ran, with {usable_bytes // 1024} KB of shared memory for a block"
    detail = f"{gpu.name} ({gpu.uuid}): {failure or passed}"
    return HealthCheck("kernel on a GPU", ok=not failure, detail=detail)


def _version_check(distribution: str) -> HealthCheck:
    problem = wrong_version(distribution)
    advice = f"{problem}. Run: python -m pip install 'tunegate[tvm]'"
    return HealthCheck(
        distribution, ok=not problem, detail=advice if problem else PINNED[distribution]
    )


# TVM's requirements on this installation.

PINNED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
"""Other versions kill the process at the first write of a database."""
LINKERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
_MODULES = ("tvm", "tvm_ffi", "xgboost")
_INSTALL = "Run: python -m pip install 'tunegate[{extra}]'"


def require(targets: Sequence[TargetConfig], step: Step, instead: RuntimeName) -> None:
    """Raises ConfigError with the command that installs what a target needs for this step, and
    EnvironmentUnfitError without a linker."""
    other = f", or write runtime: {instead}" if instead else ""
    problem = next(_missing(targets, step, other), None)
    if problem is not None:
        raise ConfigError(problem)
    if step != "plan" and linker() is None:
        message = (
            f"target {targets[0].name} is compiled, and none of {', '.join(LINKERS)} is on the "
            f"PATH to link with. Install one{other}."
        )
        raise EnvironmentUnfitError(message)
    for form in (form_for(target, {}) for target in targets if step != "plan"):
        if form is not None and (unfit := form.reason_unfit()):
            raise EnvironmentUnfitError(unfit)


def linker() -> str | None:
    """Returns the program that TVM links builds with, None without one."""
    return next((path for name in LINKERS if (path := shutil.which(name))), None)


def wrong_version(distribution: str) -> str:
    """Returns which version is installed instead of the working one, '' if that is."""
    pinned, installed = PINNED[distribution], installed_version(distribution)
    if not installed:
        return f"{distribution} {pinned} is not installed"
    return "" if installed == pinned else f"{distribution} is {installed}, and only {pinned} works"


def _missing(targets: Sequence[TargetConfig], step: Step, other: str) -> Iterator[str]:
    needs = f"target {targets[0].name} has runtime: {targets[0].runtime}"
    for problem in filter(None, (*map(wrong_version, PINNED), *map(_absent, _MODULES))):
        yield f"{needs}, and {problem}. {_INSTALL.format(extra='tvm')}{other}."
    cuda = next((target for target in targets if target.kind == "cuda"), None)
    if cuda is not None and step != "plan":
        yield from _without_cuda(cuda)


def _without_cuda(target: TargetConfig) -> Iterator[str]:
    needs = f"target {target.name} has kind: cuda"
    if _absent("pynvml"):
        yield f"{needs}, and pynvml is not installed. {_INSTALL.format(extra='nvidia')}."
    if not cuda_variables():
        install = _INSTALL.format(extra="nvidia")
        yield f"{needs}, and there is no CUDA toolkit to compile with. {install}."


def _absent(module: str) -> str:
    return "" if find_spec(module) is not None else f"the module {module} is missing"


# Checks in a child whether the compiler works at all on this machine: mismatched parts kill the
# process.

_MODULE = "tunegate.compiler.self_test"
_LIMIT_SECONDS = 120


def compiler_failure() -> str:
    """Returns how the smallest use of the compiler fails, '' if it works."""
    answer = interpreter.ask(_MODULE, variables={}, limit_seconds=_LIMIT_SECONDS)
    if answer is None:
        return f"hangs ({_LIMIT_SECONDS} s)"
    if answer.returncode == 0:
        return ""
    last = answer.stderr.decode(errors="replace").strip().splitlines()[-1:] or ["no message"]
    return f"exit {answer.returncode}: {last[0][:200]}"
