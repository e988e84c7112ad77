from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.runtimes.openvino.runtime import lacking, variants

BFLOAT16, FLOAT16, INT8 = (
    {"precision": precision} for precision in ("bfloat16", "float16", "int8")
)


def cpu_info(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    return file


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        ("sse4_2 avx2", []),
        ("avx2 avx512f avx512_vnni", [INT8]),
        ("avx512f avx512_bf16", [BFLOAT16]),
        ("avx512f avx512_bf16 avx512_fp16 amx_bf16", [BFLOAT16, FLOAT16]),
    ],
)
def test_a_precision_is_offered_where_the_processor_has_instructions_for_it(
    tmp_path: Path, flags: str, offered: list[dict[str, str]]
) -> None:
    file = cpu_info(tmp_path, flags)
    assert not lacking({}, file)
    found = [settings for settings in (BFLOAT16, FLOAT16, INT8) if not lacking(settings, file)]
    assert found == offered


def test_what_the_processor_lacks_is_named_with_what_it_has(tmp_path: Path) -> None:
    assert lacking(BFLOAT16, cpu_info(tmp_path, "sse4_2 avx2 avx512f")) == (
        "the processor has none of amx_bf16, avx512_bf16 (it has avx2 avx512f)"
    )
    assert "(it has none that are known)" in lacking(INT8, tmp_path / "absent")


def test_every_precision_is_a_variant_with_settings_of_its_own() -> None:
    assert {name: settings.get("precision") for name, settings in variants().items()} == {
        "": None,
        "bf16": "bfloat16",
        "f16": "float16",
        "int8": "int8",
        "int8.nncf": "int8",
    }
