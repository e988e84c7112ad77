from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.runtimes.openvino.precisions import offered_variants

FLOAT32: tuple[str, dict[str, str]] = ("", {})
BFLOAT16 = ("bf16", {"precision": "bfloat16"})
FLOAT16 = ("f16", {"precision": "float16"})
INT8 = ("int8", {"precision": "int8", "quantization": "static"})


@pytest.mark.parametrize(
    ("flags", "expected"),
    [
        ("sse4_2 avx2", [FLOAT32]),
        ("avx2 avx512f avx512_vnni", [FLOAT32, INT8]),
        ("avx512f avx512_bf16", [FLOAT32, BFLOAT16]),
        ("avx512f avx512_bf16 avx512_fp16 amx_bf16", [FLOAT32, BFLOAT16, FLOAT16]),
    ],
)
def test_a_precision_is_offered_where_the_processor_has_instructions_for_it(
    tmp_path: Path, flags: str, expected: list[tuple[str, dict[str, str]]]
) -> None:
    (tmp_path / "cpuinfo").write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    assert list(offered_variants(tmp_path / "cpuinfo").items()) == expected


def test_of_a_machine_that_says_nothing_float32_is_known(tmp_path: Path) -> None:
    assert list(offered_variants(tmp_path / "absent")) == [""]
