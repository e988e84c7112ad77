"""What ONNX Runtime's CUDA provider is told, and what is said where there is none."""

from __future__ import annotations

import pytest

from tunegate.runtimes.onnxruntime_cuda.runtime import (
    lacking_wheel,
    missing_provider,
    provider_options,
)

CPU = ["CPUExecutionProvider"]
BOTH = ["CUDAExecutionProvider", "CPUExecutionProvider"]
MENDED = (
    "pip uninstall -y onnxruntime onnxruntime-gpu, then pip install 'onnxruntime-gpu[cuda,cudnn]'"
)


@pytest.mark.parametrize(
    ("precision", "tf32"), [("float32", "0"), ("float16", "0"), ("tfloat32", "1")]
)
def test_tf32_is_used_where_it_was_asked_for_and_nowhere_else(precision: str, tf32: str) -> None:
    assert provider_options({"precision": precision})["use_tf32"] == tf32


def test_nothing_that_decides_numbers_or_times_is_left_to_defaults() -> None:
    assert provider_options({}) == {
        "device_id": "0",
        "use_tf32": "0",
        "cudnn_conv_algo_search": "EXHAUSTIVE",
        "cudnn_conv_use_max_workspace": "1",
        "do_copy_in_default_stream": "1",
        "enable_cuda_graph": "0",
    }
    assert provider_options({"launch": "graph"})["enable_cuda_graph"] == "1"


@pytest.mark.parametrize(
    ("wheels", "said"),
    [
        ({"onnxruntime"}, "needs onnxruntime-gpu in the place of onnxruntime: "),
        (
            {"onnxruntime", "onnxruntime-gpu"},
            "finds onnxruntime-gpu overwritten by onnxruntime: ",
        ),
    ],
)
def test_a_wheel_without_the_provider_is_named_with_what_mends_it(
    wheels: set[str], said: str
) -> None:
    assert lacking_wheel(CPU, wheels) == said + MENDED


def test_what_counts_is_what_is_imported_and_not_which_wheels_are_listed() -> None:
    assert lacking_wheel(BOTH, {"onnxruntime", "onnxruntime-gpu"}) == ""
    assert missing_provider() in {
        "",
        f"needs onnxruntime-gpu in the place of onnxruntime: {MENDED}",
    }
