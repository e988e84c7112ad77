"""Registers the tensor intrinsics of one kind of target, and no others.

`tvm.s_tir.tensor_intrin` imports the intrinsics of every target (6 to 10 s on two cores, nearly all
of it CUDA's), and every TuneContext and build worker imports that package. Here an empty package
takes its place, and only the wanted submodule is loaded into it (0.2 s for x86). CUDA's are parsed
once and kept beside the module, as Python keeps its byte code: 0.4 s instead of 9.
"""

import contextlib
import hashlib
import importlib
import os
import sys
import types
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from pathlib import Path
from typing import Any

import tvm.s_tir
from tvm.s_tir import TensorIntrin
from tvm.script import tirx

from tunegate.compiler.versions import toolchain

_PACKAGE = "tvm.s_tir.tensor_intrin"
_FOLDER = Path(str(tvm.s_tir.__file__)).parent / "tensor_intrin"
_register = TensorIntrin.register


def load_intrinsics(kind: str) -> None:
    """Loads the intrinsics of target kind `llvm` or `cuda`; a second call adds to the first."""
    _put_empty_package_in_place()
    if kind == "cuda":
        load_kept("cuda", _FOLDER / "__pycache__")
    else:
        _parse("x86")


@cache
def load_kept(name: str, folder: Path) -> None:
    """Loads the intrinsics that an earlier process left in `folder`; parses and saves them if there
    are none."""
    _put_empty_package_in_place()
    file = folder / f"{name}.{_digest(name)}.json"
    if _load(file):
        with _skip_parsing():
            _import(name)
        return
    with _record_registrations() as registrations:
        _parse(name)
    if not registrations:
        return  # imported already
    with contextlib.suppress(OSError):  # a folder we may not write to
        folder.mkdir(exist_ok=True)
        part = file.with_suffix(f".{os.getpid()}")
        part.write_text(tvm.ir.save_json(registrations))
        part.replace(file)


def _put_empty_package_in_place() -> None:
    if _PACKAGE not in sys.modules:
        package = types.ModuleType(_PACKAGE)
        package.__path__ = [str(_FOLDER)]
        sys.modules[_PACKAGE] = package
        tvm.s_tir.tensor_intrin = package


def _load(file: Path) -> bool:
    """Loads the kept intrinsics. Returns whether the file existed and was whole."""
    try:
        registrations = tvm.ir.load_json(file.read_text())
        triples = list(
            zip(registrations[::3], registrations[1::3], registrations[2::3], strict=True)
        )
    except Exception:  # what TVM raises has no common base class
        return False
    for name, description, implementation in triples:
        _register(str(name), description, implementation)
    return True


@contextlib.contextmanager
def _skip_parsing() -> Iterator[None]:
    """Keeps the module from parsing and registering intrinsics again; TVM needs its other
    functions."""
    with (
        _replace(tirx, "prim_func", lambda **_: lambda function: function),
        _replace(TensorIntrin, "register", lambda *_: None),
    ):
        yield


@contextlib.contextmanager
def _replace(owner: Any, name: str, by: Callable[..., Any]) -> Iterator[None]:
    """Replaces a function that the module calls while it is imported; there is no other way in."""
    own = vars(owner)[name]
    setattr(owner, name, by)
    try:
        yield
    finally:
        setattr(owner, name, own)


def _import(name: str) -> None:
    importlib.import_module(f"{_PACKAGE}.{name}")


def _parse(name: str) -> None:
    # TVM looks at every frame of the stack for each of hundreds of intrinsics: a thread's is short,
    # and under a test runner that is 18 s instead of 81.
    with ThreadPoolExecutor(1) as fresh_stack:
        fresh_stack.submit(_import, name).result()


@contextlib.contextmanager
def _record_registrations() -> Iterator[list[Any]]:
    """Yields a list that collects what is registered meanwhile: name, description and
    implementation of each intrinsic."""
    registrations: list[Any] = []

    def register(name: str, description: Any, implementation: Any) -> None:
        registrations.extend((name, description, implementation))
        _register(name, description, implementation)

    with _replace(TensorIntrin, "register", register):
        yield registrations


def _digest(name: str) -> str:
    """Returns a digest of what the file depends on: the module and the compiler that reads it."""
    text = (_FOLDER / f"{name}.py").read_bytes() + str(toolchain()).encode()
    return hashlib.sha256(text).hexdigest()
