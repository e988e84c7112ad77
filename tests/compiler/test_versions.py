from __future__ import annotations

from importlib.metadata import PackageNotFoundError, version

import pytest

from tunegate.compiler import versions
from tunegate.system.machine import packages as installed_version


def test_records_name_the_compiler_that_is_installed() -> None:
    found = versions.toolchain()
    assert (found.tvm, found.ffi) == (version("apache-tvm"), version("apache-tvm-ffi"))


def test_what_is_not_installed_has_no_version(monkeypatch: pytest.MonkeyPatch) -> None:
    def only_tvm(distribution: str) -> str:
        if distribution != "apache-tvm":
            raise PackageNotFoundError(distribution)
        return "0.27"

    monkeypatch.setattr(installed_version, "version", only_tvm)
    found = versions.toolchain()
    assert (found.tvm, found.ffi, found.cuda) == ("0.27", "", "")
