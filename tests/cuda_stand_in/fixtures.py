"""The stand-in for tests: `pytest_plugins` of tests/conftest.py names this module."""

import os
import sys
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.cuda_stand_in import environment, toolchain
from tests.support.programs import require

WhatCuda = Callable[..., dict[str, str]]


@pytest.fixture(scope="session")
def cuda_stand_in_libraries() -> Path:
    """The libraries, built once for all tests of this machine."""
    if sys.platform != "linux" or os.uname().machine != "x86_64":
        pytest.skip("the stand-in for CUDA runs on Linux on x86-64")
    require("g++")
    return toolchain.build()


@pytest.fixture
def cuda_stand_in(cuda_stand_in_libraries: Path, tmp_path: Path) -> WhatCuda:
    """Gives the variables of a process that has CUDA devices: see `environment.variables`, whose
    keywords these are."""

    def variables(**given: object) -> dict[str, str]:
        return environment.variables(tmp_path / "cuda-stand-in", **given)  # type: ignore[arg-type]

    return variables
