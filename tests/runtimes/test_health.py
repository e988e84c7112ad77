from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.runtime_packages import WHOLE, RuntimePackages
from tunegate.config import TargetConfig
from tunegate.runtimes import health
from tunegate.runtimes.health import runtime_checks
from tunegate.runtimes.registry import Installed, installed_runtimes


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> RuntimePackages:
    def without_compilers() -> Installed:
        """Their checks start a compiler."""
        found = installed_runtimes()
        return found._replace(runtimes=found.runtimes[1:])

    monkeypatch.setattr(health, "installed_runtimes", without_compilers)
    return RuntimePackages(tmp_path, monkeypatch)


def test_each_runtime_has_a_line_with_its_versions(packages: RuntimePackages) -> None:
    packages.install(
        "fast", WHOLE.format(name="fast").replace("return {}", 'return {"a": "1", "b": "2"}')
    )
    checks = {check.name: check for check in runtime_checks()}
    assert checks["onnxruntime"].detail.startswith("onnxruntime 1.")
    assert (checks["fast"].ok, checks["fast"].detail) == (True, "a 1, b 2")


def test_one_that_cannot_say_its_versions_is_not_well(packages: RuntimePackages) -> None:
    packages.install("fast", WHOLE.format(name="fast").replace("return {}", "raise OSError(7)"))
    (check,) = [check for check in runtime_checks() if check.name == "fast"]
    assert (check.ok, check.detail) == (False, "OSError: 7")


def test_what_cannot_be_used_is_told(packages: RuntimePackages) -> None:
    packages.install("fast", "raise OSError(7)")
    (check,) = [check for check in runtime_checks() if check.name == "runtimes"]
    assert not check.ok
    assert check.detail.endswith("cannot be loaded (OSError: 7)")


def test_one_whose_library_is_absent_is_not_installed(packages: RuntimePackages) -> None:
    packages.install("fast", WHOLE.format(name="fast"))
    (check,) = [check for check in runtime_checks() if check.name == "fast"]
    assert (check.ok, check.is_absent, check.detail) == (True, True, "not installed")


def test_those_that_no_target_uses_are_left_out_and_one_that_is_named_is_missed(
    packages: RuntimePackages,
) -> None:
    packages.install("fast", WHOLE.format(name="fast"))
    (named,) = runtime_checks([TargetConfig(name="cpu", runtime="openvino")])
    assert not named.ok
    assert "pip install 'tunegate[openvino]'" in named.detail
    found = {each.name: each for each in runtime_checks([TargetConfig(name="cpu")])}
    assert {"fast", "onnxruntime"} <= {*found}
    openvino = found["openvino"]
    assert (openvino.ok, openvino.is_absent) == (True, True)
    assert openvino.detail == "optional: needs openvino: pip install 'tunegate[openvino]'"
