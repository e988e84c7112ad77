from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.errors import ConfigError, EnvironmentUnfitError, ModelError, UnsupportedModelError
from tunegate.runtimes.tvm.finished_build import CompileFailures
from tunegate.tune.protocol import Failed

LOG = Path("compiler.log")


def test_a_fault_of_the_model_is_its_error() -> None:
    found = CompileFailures(LOG).of("m.onnx", Failed("m.onnx: no model", model=True))
    assert type(found) is ModelError
    refused = CompileFailures(LOG).of("m.onnx", Failed("m.onnx: no", model=True, compiler=True))
    assert isinstance(refused, UnsupportedModelError)


def test_a_fault_of_the_configuration_or_the_machine_is_none_of_the_models() -> None:
    with pytest.raises(ConfigError, match="bad"):
        CompileFailures(LOG).of("m.onnx", Failed("bad", model=False, configuration=True))
    with pytest.raises(EnvironmentUnfitError, match="bad"):
        CompileFailures(LOG).of("m.onnx", Failed("bad", model=False))
