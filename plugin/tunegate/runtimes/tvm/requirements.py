"""What a configuration needs of this installation, asked before any work: with the compiler
missing, a run would go on with what is left and say nothing of what it was asked for."""

from __future__ import annotations

import shutil
from collections.abc import Collection, Iterator, Sequence
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from typing import Literal

from tunegate.config import Config, TargetConfig
from tunegate.edges.nvidia.cuda_toolkit import cuda_variables
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.selection import runtimes_of

PINNED = {"apache-tvm": "0.27.0.post1", "apache-tvm-ffi": "0.1.14.post1"}
"""Other versions end the process at the first write of a database."""
LINKERS = ("g++", "gcc", "clang++", "clang", "c++", "cc")
_MODULES = ("tvm", "tvm_ffi", "xgboost")
_INSTALL = "Run: python -m pip install 'tunegate[{extra}]'"

Step = Literal["plan", "tune", "gate", "run"]


def require_installed(config: Config, step: Step, targets: Collection[str] = ()) -> None:
    """Requires what this step needs for all targets, or for those named. Raises ConfigError with
    the command that installs what is missing, and EnvironmentUnfitError where nothing links."""
    wanted = [target for target in config.targets if not targets or target.name in targets]
    compiled = [target for target in wanted if "tvm" in runtimes_of(target)]
    problem = next(_missing(compiled, config, step), None)
    if problem is not None:
        raise ConfigError(problem)
    if compiled and step != "plan" and linker() is None:
        message = (
            f"target {compiled[0].name} is compiled, and none of {', '.join(LINKERS)} is on the "
            "PATH to link with. Install one, or write runtime: onnxruntime."
        )
        raise EnvironmentUnfitError(message)


def linker() -> str | None:
    """What TVM links builds with."""
    return next((found for name in LINKERS if (found := shutil.which(name))), None)


def wrong_version(distribution: str) -> str:
    """A sentence about the version that is installed, or an empty string
    where it is the one that works."""
    wanted = PINNED[distribution]
    try:
        found = version(distribution)
    except PackageNotFoundError:
        return f"{distribution} {wanted} is not installed"
    return "" if found == wanted else f"{distribution} is {found}, and only {wanted} works"


def _missing(compiled: Sequence[TargetConfig], config: Config, step: Step) -> Iterator[str]:
    for target in compiled[:1]:
        needs = f"target {target.name} has runtime: {target.runtime}"
        other = "" if target.kind == "cuda" else ", or write runtime: onnxruntime"
        for problem in filter(None, (*map(wrong_version, PINNED), *map(_absent, _MODULES))):
            yield f"{needs}, and {problem}. {_INSTALL.format(extra='tvm')}{other}."
    cuda = next((target for target in compiled if target.kind == "cuda"), None)
    if cuda is not None and step != "plan":
        yield from _without_cuda(cuda)
    if config.executor == "ray" and step in {"tune", "run"} and _absent("ray"):
        yield f"executor: ray, and Ray is not installed. {_INSTALL.format(extra='ray')}."


def _without_cuda(target: TargetConfig) -> Iterator[str]:
    needs = f"target {target.name} has kind: cuda"
    if _absent("pynvml"):
        yield f"{needs}, and pynvml is not installed. {_INSTALL.format(extra='nvidia')}."
    if not cuda_variables():
        install = _INSTALL.format(extra="nvidia")
        yield f"{needs}, and there is no CUDA toolkit to compile with. {install}."


def _absent(module: str) -> str:
    return "" if find_spec(module) is not None else f"the module {module} is missing"
