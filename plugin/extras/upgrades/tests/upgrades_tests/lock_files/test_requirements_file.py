"""Requirements as pip reads them."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate_upgrades.lock_files.lock import LockFile, LockFileError
from tunegate_upgrades.lock_files.requirements_file import read_requirements

DIGEST = "0" * 64


def read(text: str, **others: str) -> LockFile:
    def read_other(path: str) -> str:
        name = Path(path).stem
        if name not in others:
            raise LockFileError(f"{path}: not there.")
        return others[name]

    return read_requirements("deps/r.txt", text, read_other)


def test_hashes_comments_markers_and_continued_lines_are_read() -> None:
    text = (
        "# made by uv\n--require-hashes\n"
        f"OnnxRuntime==1.20.1 ; python_version >= '3' \\\n    --hash=sha256:{DIGEST} \\\n"
        f"    --hash=sha256:{'1' * 64}\n    # via me\n"
        "winsdk==1 ; sys_platform == 'win32'\nnumpy[extra]==2.3.5  # why\n"
    )
    found = read(text)
    assert {name: pin.version for name, pin in found.pins.items()} == {
        "numpy": "2.3.5",
        "onnxruntime": "1.20.1",
    }
    assert found.pins["onnxruntime"].hashes == (f"sha256:{DIGEST}", f"sha256:{'1' * 64}")
    assert found.pins["onnxruntime"].where == "deps/r.txt:3"


@pytest.mark.parametrize(
    ("line", "why"),
    [
        ("onnxruntime>=1.19", "not pinned to one version (>=1.19)"),
        ("onnxruntime", "not pinned to one version (any version)"),
        ("onnxruntime==1.19.*", "not pinned to one version"),
        ("onnxruntime==1.19,!=1.18", "not pinned to one version"),
        ("onnxruntime @ https://u:secret@evil.example/x.whl", "taken from https://evil.example/x"),
        ("onnxruntime @ git+https://evil.example/x", "taken from git+https://evil.example/x"),
        ("https://evil.example/onnxruntime-9.9-py3-none-any.whl", "taken from https://evil"),
        ("./wheels/onnxruntime-9.9-py3-none-any.whl", "taken from ./wheels"),
        ("-e git+https://evil.example/x#egg=onnxruntime", "a directory or a repository"),
    ],
)
def test_what_is_no_pinned_version_of_an_index_is_refused_by_name(line: str, why: str) -> None:
    found = read(f"{line}\n")
    assert not found.pins
    assert why in found.refused["onnxruntime"]
    assert "secret" not in found.refused["onnxruntime"]


def test_other_places_stand_beside_each_pin() -> None:
    text = "-i https://a.example/simple\n--extra-index-url=https://b.example\n-f ./w\nx==1\n"
    assert read(text).pins["x"].indexes == (
        "https://a.example/simple",
        "https://b.example",
        "--find-links ./w",
    )


def test_included_files_count_and_constraints_do_not() -> None:
    found = read("-r more.txt\n-c limits.txt\nx==1\n", more="-r ../deps/r.txt\ny==2\n")
    assert set(found.pins) == {"x", "y"}


LONG = "https://files.example/" + "x" * 80
ONE, OTHER = (f"sha256:{digit * 64}" for digit in "12")


@pytest.mark.parametrize(
    ("before", "after"),
    [
        (f"ort @ {LONG}/1.whl", f"ort @ {LONG}/2.whl"),
        ("ort\n-c one.txt", "ort\n-c two.txt"),
        ("-e ./one#egg=ort", "-e ./two#egg=ort"),
        (f"ort==1 --hash={ONE}", f"ort==1 --hash={ONE}\nort==1 --hash={OTHER}"),
        ("./one", "./two"),
    ],
)
def test_nothing_that_changes_what_is_installed_is_read_as_unchanged(
    before: str, after: str
) -> None:
    assert read(before).decides() == read(before).decides()
    assert read(before).decides() != read(after).decides()


@pytest.mark.parametrize(
    "line",
    ["-rbase.txt", '-r "base.txt"', "--requirement base.txt", "--pre --requirem=base.txt"],
)
def test_an_included_file_is_named_in_each_way_that_pip_takes(line: str) -> None:
    assert read(line, base="ort==1").pins["ort"].version == "1"


@pytest.mark.parametrize("line", ["-r", "--frob x", "-r 'open"])
def test_a_line_that_pip_does_not_take_is_refused_with_its_place(line: str) -> None:
    with pytest.raises(LockFileError, match=r"deps/r\.txt:1: "):
        read(line)


def test_constraints_with_another_content_are_another_lock() -> None:
    for lines in ("ort\n-c limits.txt", "ort\n-climits.txt", "ort\n--constr=limits.txt"):
        assert read(lines, limits="ort==1").decides() != read(lines, limits="ort==2").decides()


def test_more_constraints_than_a_project_has_are_refused() -> None:
    assert read("ort\n" + "-c limits.txt\n" * 100, limits="ort==1").refused
    lines = "ort\n" + "".join(f"-c {number}.txt\n" for number in range(100))
    with pytest.raises(LockFileError, match=r"r\.txt:\d+: more than 16 files of constraints"):
        read(lines, **{str(number): "" for number in range(100)})


@pytest.mark.parametrize("place", ["/etc/passwd", "../../outside.txt", "https://e.example/r"])
def test_an_included_file_lies_in_the_repository(place: str) -> None:
    with pytest.raises(LockFileError, match="outside of the repository"):
        read(f"-r {place}\n")


def test_files_that_include_each_other_for_ever_end() -> None:
    names = {f"f{n}": f"-r f{n + 1}.txt\n" for n in range(99)}
    with pytest.raises(LockFileError, match="more than 16 files"):
        read("-r f0.txt\n", **names)


def test_a_project_of_its_own_is_nobodys_package() -> None:
    assert read("-e .\n.\n./sub/project\nx==1\n").refused == {}


def test_a_line_that_is_no_requirement_is_told_with_its_place() -> None:
    with pytest.raises(LockFileError, match=r"deps/r\.txt:2: no requirement: what is this"):
        read("x==1\nwhat is this\n")


@given(st.text(alphabet=st.characters(codec="utf-8"), max_size=200))
def test_any_text_is_read_or_refused(text: str) -> None:
    with contextlib.suppress(LockFileError):
        read(text)
