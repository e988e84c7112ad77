"""What is a pointer, and what only looks like one."""

from __future__ import annotations

import hashlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.pointer_files import dvc_file_of, lfs_pointer_to, md5_of
from tunegate.edges.pointers import Pointer, dvc_output, lfs_pointer


@given(st.binary())
def test_a_pointer_says_what_it_stands_for(content: bytes) -> None:
    expected = Pointer(hashlib.sha256(content).hexdigest(), len(content))
    assert lfs_pointer(lfs_pointer_to(content)) == expected
    assert dvc_output(dvc_file_of("models/m.onnx", content)) == (
        "m.onnx",
        Pointer(md5_of(content), len(content)),
    )


@given(st.binary(max_size=2000))
def test_any_other_content_is_no_pointer(content: bytes) -> None:
    assert lfs_pointer(content) is None
    assert dvc_output(content) is None


def test_a_pointer_with_extensions_is_one() -> None:
    version, *rest = lfs_pointer_to(b"model").splitlines(keepends=True)
    extension = b"ext-0-zip sha256:" + b"0" * 64 + b"\n"
    assert lfs_pointer(b"".join([version, extension, *rest])) is not None


def test_a_pointer_with_something_behind_it_is_a_file_about_pointers() -> None:
    assert lfs_pointer(lfs_pointer_to(b"model") + b"and so on\n") is None


@pytest.mark.parametrize(
    "text",
    [
        "outs: []",
        "outs: none",
        "outs:\n- path: m.onnx\n",
        "outs:\n- {md5: 0123456789abcdef0123456789abcdef.dir, path: models}",
        "outs:\n- {md5: ../../../etc/passwd, path: m.onnx}",
        "outs:\n- {md5: 0123456789abcdef0123456789abcdef, path: m.onnx, size: many}",
        "{",
        "[]",
        "[" * 5000,
        "!!python/object/apply:os.system [true]",
        "\u2028: \x07",
    ],
)
def test_what_dvc_would_not_write_for_one_file_is_none(text: str) -> None:
    assert dvc_output(text.encode()) is None
