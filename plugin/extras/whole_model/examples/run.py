"""Runs a native artifact on zeros, with nothing but Python. Write: python run.py DIRECTORY."""

from __future__ import annotations

import ctypes
import sys
from pathlib import Path


class Tensor(ctypes.Structure):
    """`model_tensor` of model.h."""

    _fields_ = (
        ("name", ctypes.c_char_p),
        ("dtype", ctypes.c_char_p),
        ("rank", ctypes.c_int32),
        ("shape", ctypes.POINTER(ctypes.c_int64)),
        ("size_bytes", ctypes.c_int64),
    )


def load_library(directory: Path) -> ctypes.CDLL:
    """Returns the object, with the types of what gives no integer."""
    library = ctypes.CDLL(str(directory.resolve() / "libmodel.so"))
    library.model_error.restype = ctypes.c_char_p
    library.model_input.restype = ctypes.POINTER(Tensor)
    library.model_output.restype = ctypes.POINTER(Tensor)
    return library


def main() -> None:
    library = load_library(Path(sys.argv[1]))
    inputs = [library.model_input(i).contents for i in range(library.model_input_count())]
    outputs = [library.model_output(i).contents for i in range(library.model_output_count())]
    given = [ctypes.create_string_buffer(each.size_bytes) for each in inputs]
    made = [ctypes.create_string_buffer(each.size_bytes) for each in outputs]
    instance = ctypes.c_void_p()
    if library.model_create(None, ctypes.byref(instance)):
        sys.exit(library.model_error().decode())
    if library.model_run(instance, pointers(given), pointers(made)):
        sys.exit(library.model_error().decode())
    for each in outputs:
        print(each.name.decode(), each.dtype.decode(), each.size_bytes)
    print(f"{ctypes.c_float.from_buffer(made[0]).value:.6g}")
    library.model_destroy(instance)


def pointers(buffers: list[ctypes.Array[ctypes.c_char]]) -> ctypes.Array[ctypes.c_void_p]:
    return (ctypes.c_void_p * len(buffers))(*map(ctypes.addressof, buffers))


if __name__ == "__main__":
    main()
