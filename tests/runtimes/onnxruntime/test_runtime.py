from __future__ import annotations

from importlib.metadata import version

import pytest

from tunegate.config import TargetConfig
from tunegate.runtimes.onnxruntime.runtime import RUNTIME


def test_onnx_runtime_runs_on_cpus_and_says_so_of_others() -> None:
    assert RUNTIME.unsupported(TargetConfig(name="cpu")) == ""
    gpu = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
    assert RUNTIME.unsupported(gpu) == "is for CPUs"


def test_a_model_is_shipped_as_it_is_or_in_int8() -> None:
    found = dict(RUNTIME.variants(TargetConfig(name="cpu")))
    assert found == {
        "": {},
        "int8": {"precision": "int8", "quantization": "static"},
        "int8.dynamic": {"precision": "int8"},
    }


def test_its_version_is_that_of_its_distribution() -> None:
    (found,) = RUNTIME.versions().items()
    assert found == ("onnxruntime", version("onnxruntime"))


@pytest.mark.parametrize("field", ["name", "title"])
def test_it_has_a_name_for_files_and_one_for_people(field: str) -> None:
    assert getattr(RUNTIME, field).replace(" ", "").lower() == "onnxruntime"
