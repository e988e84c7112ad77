"""Forms of a build come with extras, and are missed by name where there are none."""

import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.plugins.registered_plugin import nothing_installed
from tests.support.programs import run_program
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


@pytest.fixture
def core_alone(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    nothing_installed(tmp_path, monkeypatch)
    installed_forms.cache_clear()
    yield
    installed_forms.cache_clear()


@pytest.mark.usefixtures("core_alone")
def test_without_extras_a_build_is_a_library_of_kernels() -> None:
    assert installed_forms() == ()
    assert form_for(CPU, {"precision": "int8"}) is None
    assert loaded_form(Path("/nowhere"), artifact("model.so")) is None
    assert set(RUNTIME.variants(CPU)) == {"", "bf16", "int8.dynamic"}
    assert set(RUNTIME.variants(GPU)) == {"", "tf32", "f16"}


@pytest.mark.usefixtures("core_alone")
def test_what_an_extra_builds_is_told_with_what_to_install() -> None:
    with pytest.raises(ConfigError) as caught:
        form_for(NATIVE, {})
    assert str(caught.value) == f"artifact native is not installed. {INSTALL}"
    with pytest.raises(ConfigError, match="artifact whole is not installed"):
        form_for(GPU, {"launch": "whole"})
    with pytest.raises(ArtifactError, match=r"libmodel.so: artifact native is not installed"):
        loaded_form(Path("/nowhere"), artifact("libmodel.so"))


@pytest.mark.usefixtures("core_alone")
def test_a_configuration_that_asks_for_it_is_refused_in_one_line() -> None:
    text = "models: [{path: m.onnx}]\ntargets: [{name: cpu, artifact: native}]\n"
    with pytest.raises(ConfigError) as caught:
        parse_config(text, "tunegate.yaml")
    assert INSTALL in str(caught.value)
    assert "\n" not in str(caught.value)


def artifact(file: str) -> ArtifactFile:
    return ArtifactFile(runtime="tvm", file=file, inputs=(), outputs=(), threads=1)


# CUDA's intrinsics are parsed once, and read from then on.

PROGRAM = """
import sys, time
from pathlib import Path
from tunegate.compiler import intrinsics
from tvm.s_tir import TensorIntrin
parsed = []
parse = intrinsics._parse
intrinsics._parse = lambda name: (parsed.append(name), parse(name))
intrinsics.load_kept("x86", Path(sys.argv[1]))
import tvm.s_tir.tensor_intrin  # as every TuneContext does
intrin = TensorIntrin.get("dot_16x4_vnni", allow_missing=True)
import tvm.s_tir.tensor_intrin.x86  # as TVM may
assert "tvm.s_tir.tensor_intrin.cuda" not in sys.modules
print(len(parsed), intrin is not None)
"""


def loaded(folder: Path) -> str:
    return run_program([sys.executable, "-c", PROGRAM, str(folder)], check=True).stdout.strip()


def files(folder: Path) -> list[Path]:
    return sorted(folder.glob("x86.*.json"))


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("kept")
    assert loaded(made) == "1 True"
    return made


def test_they_are_parsed_once_and_read_from_then_on(folder: Path) -> None:
    before = files(folder)
    assert loaded(folder) == "0 True"
    assert len(before) == 1
    assert files(folder) == before


@pytest.mark.parametrize("rubbish", ["{", '{"nodes": []}'])
def test_a_file_that_is_not_whole_is_written_again(folder: Path, rubbish: str) -> None:
    (file,) = files(folder)
    whole = file.read_text()
    file.write_text(rubbish)
    assert loaded(folder) == "1 True"
    assert file.read_text() == whole
