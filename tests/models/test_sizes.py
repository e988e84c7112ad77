import math
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
import yaml
from onnx import TensorProto, helper, numpy_helper

from tests.models.test_export_models import CHANGE, CONFIG, source_of
from tests.models.test_export_models import OPEN as BOTH_OPEN
from tests.support.measured_cells import make_changes
from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, ModelConfig
from tunegate.models.export_models import ExportedModels, export_models
from tunegate.models.graph import graph_digest
from tunegate.models.sizes import demanded_ranks, demanded_sizes, guessed_sizes, likeliest_keys
from tunegate.review.side_settings import same_as_base, static_sizes

STATIC = ModelInput("x", (2, 8))
OPEN = ModelInput("x", (None, 8), ("batch", ""))


@pytest.mark.parametrize(
    ("base", "head", "sizes"),
    [
        (STATIC, OPEN, {"x": (2, 8)}),
        (STATIC, ModelInput("x", (), is_ranked=False), {"x": (2, 8)}),
        (STATIC, STATIC, {}),
        (OPEN, OPEN, {}),
        (OPEN, STATIC, {}),
        (STATIC, ModelInput("z", (None, 8)), {}),
        (STATIC, ModelInput("x", (None, 9)), {}),
        (STATIC, ModelInput("x", (None, None, 8)), {}),
        (ModelInput("x", (), is_ranked=False), OPEN, {}),
    ],
)
def test_one_side_says_the_sizes_where_it_is_static_and_the_other_is_not(
    base: ModelInput, head: ModelInput, sizes: dict[str, tuple[int, ...]]
) -> None:
    assert static_sizes((base,), (head,)) == sizes


def test_a_head_is_run_at_the_shapes_of_its_base_where_it_takes_them() -> None:
    open_too = ModelInput("x", (None, 8), ("tiny", ""))
    shapes = {"x": (64, 8), "gone": (1,)}
    assert same_as_base(shapes, (open_too,)) == {"x": (64, 8)}
    assert same_as_base(shapes, (STATIC, ModelInput("new", (None,)))) == {}
    assert same_as_base(shapes, (ModelInput("x", (None, 9)),)) == {}


def read_by(
    read_inputs: Callable[[Path], tuple[ModelInput, ...]],
    config: Config,
    workdir: Path,
    before: Config | None = None,
) -> ExportedModels:
    """The changes whose sides have other inputs."""
    source = source_of(workdir, config, config_before=before, read_inputs=read_inputs)
    return export_models(make_changes(), source)


def test_a_symbol_with_the_name_of_a_smaller_one_makes_no_head_smaller(tmp_path: Path) -> None:
    inputs = {
        side: (ModelInput("x", (None, 8), (name, "")),)
        for side, name in (("b", "seq"), ("h", "batch"))
    }
    config = Config(models=(ModelConfig(path="**"),), dims={"seq": 64, "batch": 1})
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path)
    assert [model.shapes for model in found.files.values()] == [{"x": (64, 8)}, {"x": (64, 8)}]
    assert found.resized == {(CHANGE.path, "head"): {"x": (64, 8)}}


def test_a_base_that_does_not_take_the_shapes_has_no_file(tmp_path: Path) -> None:
    sizes = {"b": 2, "h": 1}
    found = read_by(lambda f: (ModelInput("x", (sizes[f.read_text()], 8)),), CONFIG, tmp_path)
    assert [side for _, side in found.files] == ["head"]
    assert "axis 0 is 2 in the model, not 1" in found.unreadable[CHANGE.path, "base"]


def test_what_is_said_of_an_input_that_only_the_head_has_is_not_of_its_base(tmp_path: Path) -> None:
    entry = ModelConfig(path="**", inputs={"x": (4, 8), "y": (4,)})
    inputs = {"b": BOTH_OPEN[:1], "h": BOTH_OPEN}
    found = read_by(lambda f: inputs[f.read_text()], Config(models=(entry,)), tmp_path)
    shapes = [model.shapes for model in found.files.values()]
    assert shapes == [{"x": (4, 8)}, {"x": (4, 8), "y": (4,)}]


def test_an_input_without_its_line_has_the_size_that_the_base_gave_it(tmp_path: Path) -> None:
    before, after = (
        Config(models=(ModelConfig(path="**", inputs=given),))
        for given in ({"x": (4, 8), "y": (4,)}, {"x": (4, 8)})
    )
    inputs = {"b": BOTH_OPEN, "h": BOTH_OPEN[:1]}
    found = read_by(lambda f: inputs[f.read_text()], after, tmp_path, before)
    shapes = {side: model.shapes for (_, side), model in found.files.items()}
    assert shapes == {"base": {"x": (4, 8), "y": (4,)}, "head": {"x": (4, 8)}}


def test_a_line_that_names_no_input_is_still_an_error_of_the_head(tmp_path: Path) -> None:
    config = Config(models=(ModelConfig(path="**", inputs={"x": (4, 8), "y": (4,)}),))
    inputs = {"b": BOTH_OPEN, "h": BOTH_OPEN[:1]}
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path, config)
    assert "inputs.y: the model has no such input" in found.unreadable[CHANGE.path, "head"]


def test_an_input_under_another_name_makes_no_head_smaller(tmp_path: Path) -> None:
    static, opened = ModelInput("x", (4, 8)), ModelInput("z", (None, 8))
    config = Config(models=(ModelConfig(path="**", inputs={"z": (1, 8)}),))
    inputs = {"b": (static,), "h": (opened,)}
    found = read_by(lambda f: inputs[f.read_text()], config, tmp_path)
    assert found.files[CHANGE.path, "head"].shapes == {"z": (4, 8)}


@pytest.mark.parametrize(
    ("operator", "weight", "attributes", "demanded", "rank"),
    [
        ("MatMul", [37, 5], {}, {("x", -1): 37}, 2),
        ("Gemm", [5, 37], {"transB": 1}, {("x", -1): 37}, 2),
        ("Conv", [8, 2, 3, 3], {"group": 4}, {("x", 1): 8}, 4),
        ("Conv", [8, 2, 3], {}, {("x", 1): 2}, 3),
        ("ConvTranspose", [8, 2, 3, 3], {}, {("x", 1): 8}, 4),
        ("LSTM", [1, 16, 7], {}, {("x", -1): 7}, 3),
        ("MaxPool", [1], {"kernel_shape": [2]}, {}, 3),
        ("Transpose", [1], {"perm": [0, 2, 1]}, {}, 3),
        ("BatchNormalization", [1], {}, {("x", 1): 1}, 4),
        ("Add", [8], {}, {}, None),
    ],
)
def test_who_reads_an_input_says_how_wide_it_is_and_how_many_dimensions_it_has(
    operator: str,
    weight: list[int],
    attributes: dict[str, Any],
    demanded: dict[object, int],
    rank: int | None,
) -> None:
    nodes = [
        helper.make_node("Relu", ["x"], ["r"]),
        helper.make_node(operator, ["r", "w"], ["y"], **attributes),
    ]
    inputs = [helper.make_tensor_value_info("x", TensorProto.FLOAT, None)]
    weights = [helper.make_tensor("w", TensorProto.FLOAT, weight, [0.0] * math.prod(weight))]
    graph = helper.make_graph(nodes, "g", inputs, [], weights)
    assert demanded_sizes(graph) == demanded
    assert demanded_ranks(graph).get("x") == rank


Node = tuple[str, list[str], str]


def model(
    nodes: Sequence[Node],
    inputs: Mapping[str, list[str | int | None] | None],
    weights: dict[str, list[int]],
    kind: int = TensorProto.FLOAT,
) -> onnx.ModelProto:
    tensors = []
    for name, shape in weights.items():
        tensor = onnx.TensorProto(name=name, dims=shape, data_type=TensorProto.FLOAT)
        tensor.raw_data = bytes(4 * math.prod(shape))
        tensors.append(tensor)
    graph = helper.make_graph(
        [helper.make_node(kind_, [*reads], [makes]) for kind_, reads, makes in nodes],
        "g",
        [helper.make_tensor_value_info(name, kind, shape) for name, shape in inputs.items()],
        [helper.make_tensor_value_info("y", TensorProto.FLOAT, None)],
        tensors,
    )
    return helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)])


def sizes(made: onnx.ModelProto) -> list[int]:
    return [guess.size for guess in guessed_sizes(made)]


def test_a_size_that_the_graph_refuses_is_replaced_by_one_that_it_takes() -> None:
    nodes = [("Flatten", ["x"], "f"), ("Gemm", ["f", "w"], "y")]
    assert sizes(model(nodes, {"x": ["N", 3, "H", "W"]}, {"w": [3 * 32 * 32, 5]})) == [1, 32, 32]


def test_a_length_fits_the_positions_that_are_added() -> None:
    nodes = [("Gather", ["e", "ids"], "t"), ("Add", ["t", "p"], "y")]
    weights = {"e": [30, 16], "p": [1, 64, 16]}
    assert sizes(model(nodes, {"ids": ["batch", "seq"]}, weights, TensorProto.INT64)) == [1, 64]


def test_what_weights_demand_holds_wherever_the_symbol_stands() -> None:
    nodes = [("MatMul", ["x", "w"], "a"), ("Relu", ["other"], "y")]
    made = model(nodes, {"x": ["N", "wide"], "other": ["wide", "N"]}, {"w": [37, 5]})
    assert sizes(made) == [1, 37, 37, 1]


def test_dimensions_that_are_named_by_a_question_mark_are_not_the_same() -> None:
    assert sizes(model([("Relu", ["x"], "y")], {"x": ["?", 3, "?", "?"]}, {})) == [1, 224, 224]


def test_a_dimension_that_is_a_sum_of_others_follows_from_them() -> None:
    made = model([("Relu", ["x"], "y")], {"x": ["past", "seq"], "mask": ["past + seq"]}, {})
    found = {guess.symbol: (guess.size, guess.is_sum) for guess in guessed_sizes(made)}
    assert found == {"past": (16, False), "seq": (128, False), "past + seq": (144, True)}


def test_a_protein_has_the_atoms_of_its_residues() -> None:
    shapes: dict[str, list[str | int | None] | None] = {
        "x": ["num_atoms", 3],
        "r": ["num_residues"],
    }
    assert sizes(model([("Relu", ["x"], "a"), ("Relu", ["r"], "y")], shapes, {})) == [512, 64]
    assert sizes(model([("Relu", ["x"], "y")], {"x": ["num_atoms", 3]}, {})) == [16]


def test_keys_with_the_likeliest_sizes_can_be_pasted_for_what_is_open() -> None:
    made = model(
        [], {"image": ["batch", 3, "?", "?"], "tokens": ["batch", "seq"]}, {}, TensorProto.INT64
    )
    keys = likeliest_keys(made, {("image", 2), ("image", 3), ("tokens", 1)}, {})
    assert keys == 'dims: {"seq": 128}, inputs: {"image": [1, 3, 224, 224]}'
    assert yaml.safe_load(f"{{{keys}}}")["inputs"] == {"image": [1, 3, 224, 224]}
    assert likeliest_keys(made, (), {}) == ""


def test_an_input_without_a_rank_has_that_of_who_reads_it() -> None:
    made = model([("Conv", ["x", "w"], "y")], {"x": None}, {"w": [8, 3, 3, 3]})
    assert sizes(made) == [1, 3, 224, 224]
    assert sizes(model([("Relu", ["x"], "y")], {"x": None}, {})) == []


# Which numbers in attributes are weights, by the digest of the graph.

ML = "ai.onnx.ml"
TREE: dict[str, object] = {
    "nodes_treeids": [0, 0, 0],
    "nodes_nodeids": [0, 1, 2],
    "nodes_featureids": [0, 0, 0],
    "nodes_modes": ["BRANCH_LEQ", "LEAF", "LEAF"],
    "nodes_values": [0.5, 0.0, 0.0],
    "nodes_truenodeids": [1, 0, 0],
    "nodes_falsenodeids": [2, 0, 0],
    "target_treeids": [0, 0],
    "target_nodeids": [1, 2],
    "target_ids": [0, 0],
    "target_weights": [1.0, 2.0],
    "base_values": [0.0],
}


def digest_of(
    changed: Mapping[str, object] = {}, *, operator: str = "TreeEnsembleRegressor", domain: str = ML
) -> str:
    return digest_with({**TREE, **changed}, operator, domain)


def digest_with(given: Mapping[str, object], operator: str, domain: str = ML) -> str:
    node = helper.make_node(operator, ["x"], ["y"], domain=domain)
    node.attribute.extend(helper.make_attribute(name, value) for name, value in given.items())
    x = helper.make_tensor_value_info("x", TensorProto.FLOAT, [1, 4])
    y = helper.make_tensor_value_info("y", TensorProto.FLOAT, [1, 1])
    model = helper.make_model(helper.make_graph([node], "g", [x], [y]))
    return graph_digest(model.SerializeToString())


def tensor(*values: float) -> TensorProto:
    return numpy_helper.from_array(np.array(values, dtype=np.float64))


@pytest.mark.parametrize(
    ("attribute", "values"),
    [
        ("nodes_values", [0.25, 0.0, 0.0]),
        ("nodes_featureids", [1, 0, 0]),
        ("nodes_modes", ["BRANCH_LT", "LEAF", "LEAF"]),
        ("target_weights", [1.0]),
    ],
)
def test_thresholds_and_everything_else_are_structure(attribute: str, values: list[object]) -> None:
    assert digest_of({attribute: values}) != digest_of()


def test_leaves_and_thresholds_as_tensors_count_alike() -> None:
    first = with_tensors((1, 2), (0.5,))
    assert with_tensors((5, 6), (0.5,)) == first
    assert with_tensors((1, 2), (0.7,)) != first
    assert with_tensors((1, 2, 3), (0.5,)) != first


def with_tensors(leaves: Sequence[float], splits: Sequence[float]) -> str:
    tensors = {"leaf_weights": tensor(*leaves), "nodes_splits": tensor(*splits)}
    return digest_of(tensors, operator="TreeEnsemble")


@pytest.mark.parametrize(
    ("operator", "attribute"),
    [
        ("LinearClassifier", "coefficients"),
        ("LinearRegressor", "intercepts"),
        ("SVMRegressor", "support_vectors"),
        ("Scaler", "scale"),
    ],
)
def test_what_is_fitted_to_data_is_a_weight(operator: str, attribute: str) -> None:
    first = digest_with({attribute: [1.0, 2.0]}, operator)
    assert digest_with({attribute: [3.0, 4.0]}, operator) == first
    assert digest_with({attribute: [1.0]}, operator) != first
    assert digest_with({"post_transform": "LOGISTIC", attribute: [1.0, 2.0]}, operator) != first
