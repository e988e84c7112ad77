"""CUDA's intrinsics are parsed once, and read from then on."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PROGRAM = """
import sys, time
from pathlib import Path
from tunegate.compiler import intrinsics
from tvm.s_tir import TensorIntrin
parsed = []
parse = intrinsics._parse
intrinsics._parse = lambda name: (parsed.append(name), parse(name))
intrinsics.load_kept("x86", Path(sys.argv[1]))
import tvm.s_tir.tensor_intrin  # as every TuneContext does
intrin = TensorIntrin.get("dot_16x4_vnni", allow_missing=True)
import tvm.s_tir.tensor_intrin.x86  # as TVM may
assert "tvm.s_tir.tensor_intrin.cuda" not in sys.modules
print(len(parsed), intrin is not None)
"""


def loaded(folder: Path) -> str:
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM, str(folder)], capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


def kept(folder: Path) -> list[Path]:
    return sorted(folder.glob("x86.*.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kept")
    assert loaded(made) == "1 True"
    return made


def test_they_are_parsed_once_and_read_from_then_on(folder: Path) -> None:
    before = kept(folder)
    assert loaded(folder) == "0 True"
    assert len(before) == 1
    assert kept(folder) == before


@pytest.mark.parametrize("rubbish", ["{", '{"nodes": []}'])
def test_a_file_that_is_not_whole_is_written_again(folder: Path, rubbish: str) -> None:
    (file,) = kept(folder)
    whole = file.read_text()
    file.write_text(rubbish)
    assert loaded(folder) == "1 True"
    assert file.read_text() == whole
