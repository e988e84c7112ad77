from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.small_onnx import conv_model, save
from tunegate.artifacts.inputs import GIVEN, UNLIMITED, InputRule, Integers
from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError, UnsupportedModelError
from tunegate.models.prepared import Compilable, PreparedModel
from tunegate.runtimes.openvino import runtime
from tunegate.runtimes.openvino.layer_names import LAYERS, ExecutedLayer, names_in, names_of_layers
from tunegate.runtimes.openvino.runtime import RUNTIME, lacking, variants
from tunegate.system.output.artifact_file import ArtifactFile, ArtifactTensor

CPU = TargetConfig(name="cpu")


def test_not_installed_it_says_what_installs_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    assert RUNTIME.unsupported(CPU) == "needs openvino: pip install 'tunegate[openvino]'"
    assert dict(RUNTIME.versions()) == {}


def test_its_own_quantizer_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    monkeypatch.setattr(runtime, "lacking", lambda settings: "")
    model = PreparedModel(
        original=tmp_path / "m.onnx",
        weights=None,
        inputs=(),
        outputs=(),
        make_compilable=lambda: Compilable(tmp_path, tmp_path),
    )
    with pytest.raises(NotOfferedError, match=r"not installed: pip install 'tunegate\[nncf\]'$"):
        RUNTIME.save(model, tmp_path, RUNTIME.variants(CPU)["int8.nncf"])


def test_numbers_that_may_need_more_than_32_bits_are_refused(tmp_path: Path) -> None:
    rule, given = (InputRule(Integers(0, 255), why) for why in (UNLIMITED, f"{GIVEN}0 to 255"))
    values = {"x": ("uint16", rule), "ids": ("int64", rule), "a": ("float64", None)}
    values["b"] = ("float64", given)
    artifact = ArtifactFile(
        runtime="openvino",
        file="m.onnx",
        inputs=tuple(ArtifactTensor(name, (4,), *each) for name, each in values.items()),
        outputs=(),
        threads=1,
        model="m.onnx",
    )
    with pytest.raises(UnsupportedModelError, match="values of ids, a may need more"):
        RUNTIME.load(tmp_path, artifact)


KNOWN = {"conv1", "relu1", "pool"}


class OwnFile:
    """A file of OpenVINO's own, as OpenVINO reads it."""

    def __init__(self, told: str) -> None:
        self.astype = {str: told}.__getitem__

    def get_rt_info(self, path: list[str]) -> OwnFile:
        assert path == [LAYERS]
        return self


def test_the_names_of_an_onnx_file_are_those_of_nodes_and_what_they_give(tmp_path: Path) -> None:
    file = save(conv_model(name="stem"), tmp_path / "m.onnx")
    assert names_in(file, None) == {"stem", "c", "stem_relu", "y"}


def test_a_file_of_openvinos_own_says_them() -> None:
    assert names_in(Path("m.xml"), lambda file: OwnFile('["stem", "y"]')) == {"stem", "y"}


def test_a_layer_is_called_like_the_first_node_of_the_model_in_it() -> None:
    layers = {
        "Multiply_97": ExecutedLayer(("Constant_3", "conv1", "relu1")),
        "Odd_1": ExecutedLayer(("other",)),
        "pool": ExecutedLayer(("pool",)),
    }
    named = names_of_layers(layers, KNOWN)
    assert named == {"Multiply_97": "conv1", "Odd_1": "Odd_1", "pool": "pool"}


def test_a_change_of_layout_is_part_of_the_layer_before_it_else_of_that_behind_it() -> None:
    layers = {
        "x": ExecutedLayer(),
        "x_abcd_acdb_conv1": ExecutedLayer(before="x", after="convert"),
        "convert": ExecutedLayer(before="x_abcd_acdb_conv1", after="conv1"),
        "conv1": ExecutedLayer(("conv1",), before="convert", after="conv1_acdb_abcd_pool"),
        "conv1_acdb_abcd_pool": ExecutedLayer(before="conv1", after="pool"),
        "pool": ExecutedLayer(("pool",), before="conv1_acdb_abcd_pool"),
    }
    named = names_of_layers(layers, KNOWN)
    assert named["x_abcd_acdb_conv1"] == named["convert"] == "conv1"
    assert named["conv1_acdb_abcd_pool"] == "conv1"


BFLOAT16, FLOAT16, INT8 = (
    {"precision": precision} for precision in ("bfloat16", "float16", "int8")
)


def cpu_info(folder: Path, flags: str) -> Path:
    file = folder / "cpuinfo"
    file.write_text(f"processor\t: 0\nflags\t\t: fpu {flags}\n")
    return file


@pytest.mark.parametrize(
    ("flags", "offered"),
    [
        ("sse4_2 avx2", []),
        ("avx2 avx512f avx512_vnni", [INT8]),
        ("avx512f avx512_bf16", [BFLOAT16]),
        ("avx512f avx512_bf16 avx512_fp16 amx_bf16", [BFLOAT16, FLOAT16]),
    ],
)
def test_a_precision_is_offered_where_the_processor_has_instructions_for_it(
    tmp_path: Path, flags: str, offered: list[dict[str, str]]
) -> None:
    file = cpu_info(tmp_path, flags)
    assert not lacking({}, file)
    found = [settings for settings in (BFLOAT16, FLOAT16, INT8) if not lacking(settings, file)]
    assert found == offered


def test_what_the_processor_lacks_is_named_with_what_it_has(tmp_path: Path) -> None:
    assert lacking(BFLOAT16, cpu_info(tmp_path, "sse4_2 avx2 avx512f")) == (
        "the processor has none of amx_bf16, avx512_bf16 (it has avx2 avx512f)"
    )
    assert "(it has none that are known)" in lacking(INT8, tmp_path / "absent")


def test_every_precision_is_a_variant_with_settings_of_its_own() -> None:
    expected = {"": None, "bf16": "bfloat16", "f16": "float16", "int8": "int8", "int8.nncf": "int8"}
    assert {name: settings.get("precision") for name, settings in variants().items()} == expected
