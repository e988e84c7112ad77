from __future__ import annotations

from pathlib import Path

import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.inputs import InputForm
from tunegate.cli.handlers.doctor_checks import shape_report
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.models.finder import find_models
from tunegate.models.model_inputs import made_of, stated_size


def test_every_profile_and_every_mistake_is_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    save(matmul_model(rows="batch"), workspace.root / "models" / "m.onnx")
    profiles = {"one": ProfileConfig(dims={"batch": 1}), "open": ProfileConfig()}
    config = Config(models=(ModelConfig(path="models/*", profiles=profiles),), dims={"batsh": 2})
    found = shape_report(find_models(workspace.root, config), config)
    assert [(each.model, each.size) for each in found.sizes] == [
        ("models/m.onnx@one", 1),
        ("models/m.onnx@open", None),
    ]
    assert [check.detail.partition(":")[0] for check in found.checks] == [
        "dims.batsh",
        "models/m.onnx@open",
    ]
    assert not any(check.ok for check in found.checks)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("models/m.onnx", "nonsense")
    config = Config(models=(ModelConfig(path="**"),))
    broken, shapes = shape_report(find_models(workspace.root, config), config).checks
    assert (broken.name, broken.ok) == ("models", False)
    assert broken.detail == "models/m.onnx: not a readable ONNX file. Export it again."
    assert (shapes.name, shapes.ok) == ("shapes", True)


TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [0, "n"])
SEQUENCE = helper.make_sequence_type_proto(TENSOR)
MAP = onnx.TypeProto(map_type={"key_type": TensorProto.STRING, "value_type": TENSOR})


@pytest.mark.parametrize(
    ("kind", "form", "words"),
    [
        (TENSOR, "", "tensor"),
        (SEQUENCE, "sequence", "sequence of tensor"),
        (helper.make_optional_type_proto(TENSOR), "optional", "optional of tensor"),
        (
            helper.make_optional_type_proto(SEQUENCE),
            "optional sequence",
            "optional of sequence of tensor",
        ),
    ],
)
def test_what_has_tensors_inside_has_their_type(
    kind: onnx.TypeProto, form: InputForm, words: str
) -> None:
    made = made_of(helper.make_value_info("x", kind))
    assert (made.form, made.kind) == (form, words)
    assert [stated_size(each) for each in made.tensor.shape.dim] == [0, None]


@pytest.mark.parametrize("kind", [MAP, helper.make_sequence_type_proto(MAP), onnx.TypeProto()])
def test_what_cannot_be_given_has_no_form(kind: onnx.TypeProto) -> None:
    assert made_of(onnx.ValueInfoProto(name="x", type=kind)).form is None


def test_sequences_inside_of_sequences_have_no_form() -> None:
    kind = TENSOR
    for _ in range(50):
        kind = helper.make_sequence_type_proto(kind)
    assert made_of(helper.make_value_info("x", kind)).form is None
