"""Packages with runtimes, as an installer leaves them where this interpreter installs."""

import importlib
import itertools
import shutil
from pathlib import Path

import pytest

from tests.plugins.registered_plugin import install_into, register

_numbers = itertools.count()
WHOLE = """
class Runtime:
    name, title = "{name}", "Example"
    def unsupported(self, target): return ""
    def variants(self, target): return {{"": {{}}}}
    def versions(self): return {{}}
    def save(self, model, directory, settings):
        (directory / "model.bin").write_bytes(b"model")
        return "model.bin"
    def load(self, directory, artifact): return Loaded()
class Loaded:
    def run(self, feed): return [feed["x"]]
    def bound(self, feed): return lambda: None
RUNTIME = Runtime()
"""


class RuntimePackages:
    """A directory that this interpreter installs into, for the length of a test."""

    def __init__(self, place: Path, monkeypatch: pytest.MonkeyPatch) -> None:
        place.mkdir(exist_ok=True)
        self._place = place
        install_into(place, monkeypatch)
        monkeypatch.syspath_prepend(str(place))

    def install(self, name: str, source: str, package: str = "example-1.0") -> None:
        """Replaces what the package has been."""
        module = f"runtime_package_{next(_numbers)}"
        (self._place / f"{module}.py").write_text(source)
        shutil.rmtree(self._place / f"{package}.dist-info", ignore_errors=True)
        register(self._place, package, "tunegate.runtimes", name, f"{module}:RUNTIME")
        importlib.invalidate_caches()
