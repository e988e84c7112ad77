from __future__ import annotations

import contextlib
import io
import pickle
import zipfile
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tunegate.errors import ModelError
from tunegate.models.inputs import value_files as array_files
from tunegate.models.inputs.value_files import read_array
from tunegate.models.kept_values import save_value

NUMBERS = np.arange(6, dtype=np.int64).reshape(2, 3)


def _npy(array: Any, *, allow_pickle: bool = False) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array, allow_pickle=allow_pickle)
    return stream.getvalue()


def _npz(**arrays: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, **arrays)
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", _npy(NUMBERS)),
        ("X.NPY", _npy(NUMBERS)),
        ("x.npz", _npz(only=NUMBERS)),
        ("x.npz", _npz(ids=NUMBERS, mask=np.ones(2))),
        ("input_0.pb", onnx.numpy_helper.from_array(NUMBERS, "ids").SerializeToString()),
    ],
)
def test_arrays_are_read_from_the_usual_files(name: str, content: bytes) -> None:
    found = read_array(content, name, "ids")
    assert (found.tolist(), found.dtype) == (NUMBERS.tolist(), NUMBERS.dtype)


def test_texts_are_read_and_kept_without_pickles(tmp_path: Any) -> None:
    tensor = onnx.numpy_helper.from_array(np.array(["a", "bc"], dtype=object), "t")
    found = read_array(tensor.SerializeToString(), "t.pb", "t")
    assert found.tolist() == ["a", "bc"]
    kept = save_value(found, tmp_path / "t")
    assert np.load(kept, allow_pickle=False).tolist() == ["a", "bc"]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("a pickle ran",)


EVIL = np.array([Evil()], dtype=object)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.npy", _npy(EVIL, allow_pickle=True), "pickle, which is never loaded"),
        ("x.npy", pickle.dumps(Evil()), "cannot be read as .npy"),
        ("x.npz", _npz(a=NUMBERS, b=NUMBERS), "it has no array ids; it has a, b"),
        ("x.npz", b"PK", "cannot be read as .npz"),
        ("x.pb", b"\xff\xff", "cannot be read as .pb"),
        ("x.pb", b"", "no TensorProto"),
        ("x.npy", b"", "cannot be read as .npy"),
        ("x.npy", _npy(NUMBERS)[:-1], "its header and its size do not fit together"),
        ("x.txt", b"1 2", "must end in .npy, .npz, .pb"),
    ],
)
def test_what_is_no_array_is_told_in_a_few_words(
    capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        read_array(content, name, "ids")
    assert capsys.readouterr().out == ""


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(array_files, "MAX_ARRAY_BYTES", 10_000)
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("x.npy", _npy(np.zeros(100_000)))
    with pytest.raises(ModelError, match="an input may have"):
        read_array(stream.getvalue(), "x.npz", "x")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_unpacks_at_once_whatever_is_read_is_refused(compression: int) -> None:
    """A megabyte of bzip2 unpacks to twenty gigabytes."""
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        archive.writestr("x.npy", _npy(NUMBERS))
    with pytest.raises(ModelError, match="not compressed as NumPy does it"):
        read_array(stream.getvalue(), "x.npz", "x")


def test_a_header_that_claims_petabytes_takes_no_memory() -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(ModelError, match="do not fit together"):
        read_array(stream.getvalue() + b"12345678", "x.npy", "x")


@settings(max_examples=60)
@given(cut=st.integers(0, 200), at=st.integers(0, 199), byte=st.integers(0, 255))
def test_damaged_files_are_arrays_or_told(cut: int, at: int, byte: int) -> None:
    for name, whole in (("x.npy", _npy(NUMBERS)), ("x.npz", _npz(x=NUMBERS))):
        content = bytearray(whole[: len(whole) - cut])
        if at < len(content):
            content[at] = byte
        with contextlib.suppress(ModelError):
            assert read_array(bytes(content), name, "x").ndim >= 0
