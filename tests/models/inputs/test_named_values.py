from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.graphs import GraphInput, graph_of, node, runs, values_of_inputs
from tunegate.artifacts.inputs import Columns, Constant, Draw, Integers, Normal, Uniform
from tunegate.models.inputs.named_values import named_rule

TABLE = np.ones((30, 4), np.float32)


def value(
    name: str, *others: GraphInput, dtype: str = "float32", shape: tuple[int, ...] = ()
) -> object:
    tensor = GraphInput(name, shape, dtype)
    rule = named_rule(tensor, [tensor, *others], {})
    return None if rule is None else rule.values


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("speed", 1.0),
        ("speaking_rate", 1.0),
        ("lengthScale", 1.0),
        ("noise_scale", 0.667),
        ("noise_scale_w", 0.8),
        ("input_temperature", 1.0),
        ("fmin", 50.0),
        ("f_max", 1100.0),
        ("iou_threshold", 0.45),
        ("conf_thres", None),
        ("score_threshold", 0.25),
        ("x", None),
        ("embedding", None),
    ],
)
def test_a_number_that_a_caller_sets_is_what_callers_set(name: str, expected: float | None) -> None:
    assert value(name) == (None if expected is None else Constant(expected))


@pytest.mark.parametrize(("name", "side"), [("widths", 96), ("image_height", 64)])
def test_a_width_or_height_is_that_of_the_image(name: str, side: int) -> None:
    image = GraphInput("x", (1, 1, 64, 96), "float32")
    assert value(name, image, dtype="int64", shape=(1,)) == Constant(side)


def test_data_keep_their_draws_whatever_they_are_called() -> None:
    assert value("speed", shape=(1, 500)) is None
    assert value("scale", dtype="object") is None


def test_a_length_is_that_of_the_input_that_it_is_named_after() -> None:
    x, mel = GraphInput("x", (1, 128), "int64"), GraphInput("mel", (1, 80, 300), "float32")
    integer = {"dtype": "int64", "shape": (1,)}
    assert value("x_lengths", x, mel, **integer) == Constant(128)  # type: ignore[arg-type]
    assert value("mel_len", x, mel, **integer) == Constant(80)  # type: ignore[arg-type]
    rule = named_rule(GraphInput("mel_len", (1,), "int64"), [x, mel], {"mel": [0, 2]})
    assert rule is not None
    assert (rule.values, rule.why) == (Constant(300), "by its name: the length of mel")


def test_a_count_is_that_of_what_is_counted() -> None:
    atoms = GraphInput("atom_features", (24, 30), "float32")
    assert value("num_atoms", atoms, dtype="int64") == Constant(24)
    residues = GraphInput("residue_index", (1, 96), "int64")
    assert value("n_residues", atoms, residues, dtype="int32", shape=(1,)) == Constant(96)


def test_the_extents_of_an_image_are_its_own() -> None:
    image = GraphInput("image", (1, 3, 640, 480), "float32")
    found = value("orig_target_sizes", image, dtype="int64", shape=(1, 2))
    assert found == Columns(1, (Constant(640), Constant(480)))
    assert value("im_shape", image, shape=(1, 2)) == found


def test_a_table_that_limits_a_voice_counts_before_its_name() -> None:
    sid = GraphInput("sid", (1,), "int64")
    model = graph_of([node("Gather", "table sid", "y")], [sid], weights={"table": TABLE})
    assert values_of_inputs(model, [sid]) == {"sid": Constant(0)}


def test_characters_as_floats_are_drawn_from_their_table() -> None:
    text = GraphInput("text", (1, 64), "float32")
    nodes = [node("Cast", "text", "ids", to=7), node("Gather", "table ids", "y")]
    model = graph_of(nodes, [text], weights={"table": TABLE})
    assert values_of_inputs(model, [text]) == {"text": Integers(0, 29)}
    assert runs(model, [text])


def test_floats_that_are_scaled_to_indices_cover_all_of_them() -> None:
    image = GraphInput("image", (1, 64), "float32")
    nodes = [
        node("Mul", "image many", "scaled"),
        node("Cast", "scaled", "ids", to=7),
        node("Gather", "table ids", "y"),
    ]
    model = graph_of(nodes, [image], weights={"table": TABLE, "many": np.float32(29)})
    assert values_of_inputs(model, [image]) == {"image": Uniform(0.0, 1.0)}


def test_special_tokens_that_are_compared_do_not_narrow_a_vocabulary() -> None:
    ids = GraphInput("ids", (2, 5), "int64")
    nodes = [
        node("Equal", "ids special", "is_special"),
        node("Cast", "is_special", "mask", to=1),
        node("Gather", "table ids", "row"),
        node("ReduceSum", "row last", "one", keepdims=0),
        node("Add", "one mask", "y"),
    ]
    weights = {"table": TABLE, "special": np.array([[0, 1, 0, 1, 0]]), "last": np.array([-1])}
    model = graph_of(nodes, [ids], weights=weights)
    assert values_of_inputs(model, [ids]) == {"ids": Integers(0, 29)}
    assert runs(model, [ids])


def _ensemble(**attributes: object) -> onnx.ModelProto:
    """Two trees of one node each, over features 0 and 2."""
    thresholds = onnx.numpy_helper.from_array(np.array([10.0, 30.0], np.float32))
    weights = onnx.numpy_helper.from_array(np.array([1.0, 2.0, 3.0, 4.0], np.float32))
    modes = onnx.numpy_helper.from_array(np.array([0, 0], np.uint8))
    given: dict[str, Any] = {
        "n_targets": 1,
        "aggregate_function": 1,
        "post_transform": 0,
        "tree_roots": [0, 1],
        "nodes_featureids": [0, 2],
        "nodes_splits": thresholds,
        "nodes_modes": modes,
        "nodes_truenodeids": [0, 2],
        "nodes_trueleafs": [1, 1],
        "nodes_falsenodeids": [1, 3],
        "nodes_falseleafs": [1, 1],
        "leaf_targetids": [0, 0, 0, 0],
        "leaf_weights": weights,
        **attributes,
    }
    return graph_of(
        [node("TreeEnsemble", "x", "y", domain="ai.onnx.ml", **given)],
        [GraphInput("x", (1, 3), "float32")],
    )


def test_trees_of_the_newest_operator_get_values_around_their_thresholds() -> None:
    x = GraphInput("x", (1, 3), "float32")
    found = values_of_inputs(_ensemble(), [x])["x"]
    assert found == Columns(1, (Uniform(9.0, 11.0), Normal(), Uniform(27.0, 33.0)))
    model = _ensemble()
    model.opset_import[1].version = 5
    assert runs(model, [x])


def test_a_tree_over_categories_gets_these() -> None:
    modes = onnx.numpy_helper.from_array(np.array([4, 6], np.uint8))
    sets = onnx.numpy_helper.from_array(np.array([3.0, 7.0, np.nan], np.float32))
    x = GraphInput("x", (1, 3), "float32")
    found = values_of_inputs(_ensemble(nodes_modes=modes, membership_values=sets), [x])["x"]
    expected: tuple[Draw, ...] = (Integers(10, 11), Normal(), Integers(3, 8))
    assert found == Columns(1, expected)
