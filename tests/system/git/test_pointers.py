"""What is a pointer, and what only looks like one."""

from __future__ import annotations

import hashlib
from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.models.pointer_files import dvc_file_of, lfs_pointer_to, md5_of
from tunegate.errors import ModelError
from tunegate.system.git.content import ContentPointer, dvc_pointer, is_odd_lfs_pointer, lfs_pointer


@given(st.binary())
def test_a_pointer_says_what_it_stands_for(content: bytes) -> None:
    expected = ContentPointer(hashlib.sha256(content).hexdigest(), len(content), "sha256")
    assert lfs_pointer(lfs_pointer_to(content)) == expected
    told = dvc_pointer(dvc_file_of("models/m.onnx", content), "models/m.onnx")
    assert told == ContentPointer(md5_of(content), len(content), "md5")


@given(st.binary(max_size=2000))
def test_any_other_content_is_no_pointer(content: bytes) -> None:
    assert lfs_pointer(content) is None
    with pytest.raises(ModelError, match=r"^m.onnx.dvc: not a DVC file of this name"):
        dvc_pointer(content, "m.onnx")


def test_a_pointer_with_extensions_is_one() -> None:
    version, *rest = lfs_pointer_to(b"model").splitlines(keepends=True)
    extension = b"ext-0-zip sha256:" + b"0" * 64 + b"\n"
    assert lfs_pointer(b"".join([version, extension, *rest])) is not None


def test_a_pointer_with_something_behind_it_is_a_file_about_pointers() -> None:
    assert lfs_pointer(lfs_pointer_to(b"model") + b"and so on\n") is None


@pytest.mark.parametrize("line", [b"anything", b"oid sha256:" + b"0" * 64, b""])
def test_a_pointer_has_no_lines_of_another_kind(line: bytes) -> None:
    version, *rest = lfs_pointer_to(b"model").splitlines()
    assert lfs_pointer(b"\n".join([version, line, *rest, b""])) is None


@pytest.mark.parametrize(
    "written",
    [
        lambda pointer: pointer.rstrip(b"\n"),
        lambda pointer: pointer.replace(b"\n", b"\r\n"),
        lambda pointer: b"\n" + pointer,
        lambda pointer: pointer.replace(
            b"https://git-lfs.github.com", b"https://hawser.github.com"
        ),
    ],
)
def test_what_git_lfs_takes_for_a_pointer_and_we_do_not_is_odd(
    written: Callable[[bytes], bytes],
) -> None:
    pointer = lfs_pointer_to(b"model")
    assert lfs_pointer(written(pointer)) is None
    assert is_odd_lfs_pointer(written(pointer))
    assert not is_odd_lfs_pointer(pointer)


@given(st.binary(max_size=2000))
def test_other_content_is_no_odd_pointer(content: bytes) -> None:
    assert not is_odd_lfs_pointer(content)


def test_of_several_files_that_with_the_name_counts() -> None:
    other = dvc_file_of("other.onnx", b"other").removeprefix(b"outs:\n")
    told = dvc_pointer(dvc_file_of("m.onnx", b"mine") + other, "d/m.onnx")
    assert told.digest == md5_of(b"mine")


@pytest.mark.parametrize("wdir", [".", "./"])
def test_a_dvc_file_may_say_that_it_is_of_its_own_directory(wdir: str) -> None:
    text = f"wdir: {wdir}\n".encode() + dvc_file_of("m.onnx", b"mine")
    assert dvc_pointer(text, "d/m.onnx").digest == md5_of(b"mine")


def test_an_old_dvc_file_may_be_of_text_and_may_not_say_how_long_it_is() -> None:
    text = f"outs:\n- md5: {md5_of(b'x')}\n  path: m.onnx\n"
    assert dvc_pointer(text.encode(), "m.onnx") == ContentPointer(md5_of(b"x"), None, "md5-text")


ALIASES = "".join(f"v{n}: &v{n} [{', '.join([f'*v{n - 1}'] * 9)}]\n" for n in range(1, 12))


@pytest.mark.parametrize(
    ("text", "problem"),
    [
        ("outs: []", "not a DVC file of this name"),
        ("outs: none", "not a DVC file of this name"),
        *(
            (
                f"wdir: {wdir}\nouts:\n- {{md5: {md5_of(b'x')}, path: m.onnx}}",
                "its `wdir` leads to a file elsewhere",
            )
            for wdir in ("../other", "..", "sub", "/tmp", "sub/..", "[.]", "''", "null")
        ),
        ("outs:\n- path: m.onnx\n", "names no md5 of the file"),
        ("outs:\n- {path: other.onnx}", "not a DVC file of this name"),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef.dir, path: m.onnx}",
            "of a directory, which is not read",
        ),
        ("outs:\n- {md5: ../../../etc/passwd, path: m.onnx}", "names no md5 of the file"),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef, path: m.onnx, size: many}",
            "names no md5 of the file",
        ),
        (
            "outs:\n- {md5: 0123456789abcdef0123456789abcdef, path: m.onnx, hash: crc}",
            "names no md5 of the file",
        ),
        ("{", "not a DVC file of this name"),
        ("[]", "not a DVC file of this name"),
        ("[" * 5000, "not a DVC file of this name"),
        ("!!python/object/apply:os.system [true]", "not a DVC file of this name"),
        ("\u2028: \x07", "not a DVC file of this name"),
        (f"v0: &v0 [x]\n{ALIASES}outs: *v11", "not a DVC file of this name"),
        (
            f"outs:\n- {{md5: {md5_of(b'x')}, path: m.onnx}}\n{'#' * 300_000}",
            "not a DVC file of this name",
        ),
    ],
)
def test_what_dvc_would_not_write_for_one_file_is_refused(text: str, problem: str) -> None:
    with pytest.raises(ModelError) as raised:
        dvc_pointer(text.encode(), "m.onnx")
    assert str(raised.value) == f'm.onnx.dvc: {problem}. Run: dvc add "m.onnx"'
