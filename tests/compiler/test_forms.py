"""Forms of a build come with extras, and are missed by name where there are none."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.registered_plugin import nothing_installed
from tunegate.compiler.forms import form_for, installed_forms, loaded_form
from tunegate.config import TargetConfig
from tunegate.errors import ArtifactError, ConfigError
from tunegate.review.config_file import parse_config
from tunegate.runtimes.tvm.runtime import RUNTIME
from tunegate.system.output.artifact_file import ArtifactFile

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")
NATIVE = TargetConfig(name="cpu", artifact="native")
INSTALL = 'Install it: pip install "tunegate[whole-model]"'


@pytest.fixture(autouse=True)
def core_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    nothing_installed(tmp_path, monkeypatch)
    installed_forms.cache_clear()
    yield
    installed_forms.cache_clear()


def test_without_extras_a_build_is_a_library_of_kernels() -> None:
    assert installed_forms() == ()
    assert form_for(CPU, {"precision": "int8"}) is None
    assert loaded_form(Path("/nowhere"), artifact("model.so")) is None
    assert set(RUNTIME.variants(CPU)) == {"", "bf16", "int8.dynamic"}
    assert set(RUNTIME.variants(GPU)) == {""}


def test_what_an_extra_builds_is_told_with_what_to_install() -> None:
    with pytest.raises(ConfigError) as caught:
        form_for(NATIVE, {})
    assert str(caught.value) == f"artifact native is not installed. {INSTALL}"
    with pytest.raises(ConfigError, match="artifact whole is not installed"):
        form_for(GPU, {"launch": "whole"})
    with pytest.raises(ArtifactError, match=r"libmodel.so: artifact native is not installed"):
        loaded_form(Path("/nowhere"), artifact("libmodel.so"))


def test_a_configuration_that_asks_for_it_is_refused_in_one_line() -> None:
    text = "models: [{path: m.onnx}]\ntargets: [{name: cpu, artifact: native}]\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "tunegate.yaml")
    assert INSTALL in str(caught.value)
    assert "\n" not in str(caught.value)


def artifact(file: str) -> ArtifactFile:
    return ArtifactFile(runtime="tvm", file=file, inputs=(), outputs=(), threads=1)
