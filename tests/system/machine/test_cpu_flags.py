from __future__ import annotations

from pathlib import Path

from tunegate.system.machine.cores import lacks_any, lacks_some


def cpu_info(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    return file


def test_one_of_several_is_enough_or_all_are_needed(tmp_path: Path) -> None:
    info = cpu_info(tmp_path, "avx512f avx512_bf16")
    wanted = ("amx_bf16", "avx512_bf16")
    assert lacks_any(wanted, info) == ""
    assert lacks_some(wanted, info) == "the processor lacks amx_bf16 (it has avx512f avx512_bf16)"
    assert lacks_some(("avx512_bf16",), info) == ""
    assert lacks_any((), info) == lacks_some((), info) == ""


def test_a_machine_that_says_nothing_has_nothing(tmp_path: Path) -> None:
    assert "(it has none that are known)" in lacks_any(("amx_bf16",), tmp_path / "absent")
