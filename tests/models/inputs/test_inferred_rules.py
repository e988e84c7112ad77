from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.support.graphs import GraphInput, graph_of, node, runs, values_of_inputs
from tests.support.small_onnx import part_of, typed
from tunegate.artifacts.inputs import (
    UNLIMITED,
    Columns,
    Constant,
    Draw,
    Files,
    InputRule,
    Integers,
    Normal,
    OneOf,
    Uniform,
)
from tunegate.models.inputs.inferred_rules import inferred_rules, with_own_limit
from tunegate.models.seeded_inputs import MAX_CALIBRATION_INPUTS, calibration
from tunegate.system.output.artifact_file import ArtifactTensor

IDS = GraphInput("ids", (2, 5), "int64")
TABLE = np.ones((30, 4), np.float32)


def test_tokens_lie_within_the_vocabulary() -> None:
    model = graph_of([node("Gather", "table ids", "y")], [IDS], weights={"table": TABLE})
    (rule,) = inferred_rules(model, [IDS]).values()
    assert rule is not None
    assert (rule.values, rule.why) == (Integers(0, 29), "indices of the table table")


WHOLE, BYTES, WIDE = "int32", "uint8", np.array(300)


@pytest.mark.parametrize(
    ("operator", "dtype", "other", "expected"),
    [
        ("Div", "int64", None, Integers(1, 255)),
        ("Mod", BYTES, None, Integers(1, 255)),
        ("BitShift", BYTES, None, Integers(0, 7)),
        ("Pow", WHOLE, None, Integers(0, 3)),
        ("Pow", "float32", np.array(2, np.int32), Uniform(0, 3)),
        ("Pow", WHOLE, np.array(40000, np.int32), Integers(0, 2)),
    ],
)
def test_integers_are_drawn_without_what_differs_between_processors(
    operator: str, dtype: str, other: Any, expected: Draw
) -> None:
    """A division by 0, a shift by all bits, and powers beyond the type."""
    one, by = GraphInput("x", (2, 5), dtype), GraphInput("by", (2, 5), dtype)
    weights, given = ({}, [one, by]) if other is None else ({"x": other}, [by])
    options = {"direction": "LEFT"} if operator == "BitShift" else {}
    model = graph_of([node(operator, "x by", "y", **options)], given, weights=weights)
    assert values_of_inputs(model, given)["by"] == expected


@pytest.mark.parametrize(
    ("operator", "count", "dtype", "expected"),
    [
        ("ReduceProd", 4, WHOLE, Integers(1, 215)),
        ("ReduceProd", 31, WHOLE, OneOf((-1, 1))),
        ("ReduceProd", 31, BYTES, OneOf((1,))),
        ("ReduceProd", 31, "int64", Integers(1, 3)),
        ("ReduceSum", 2**23, WHOLE, Integers(0, 255)),
        ("ReduceSum", 2**24, WHOLE, Integers(0, 127)),
        ("ReduceSumSquare", 2**20, WHOLE, Integers(0, 45)),
        ("ReduceMax", 2**24, WHOLE, Integers(0, 255)),
    ],
)
def test_a_sum_or_product_of_integers_fits_their_type(
    operator: str, count: int, dtype: str, expected: Draw
) -> None:
    """Beyond it ONNX Runtime gives the last number, and a kernel begins again."""
    x = GraphInput("x", (3, count), dtype)
    cast = node("Cast", "x", "i", to=7 if dtype == "int64" else 6)
    reduction = node(operator, "i axes", "y")
    weights = {"axes": np.array([1])}
    if operator != "ReduceSum":  # whose axes are no attribute here
        reduction, weights = node(operator, "i", "y", axes=[1]), {}
    model = graph_of([cast, reduction], [x], weights=weights)
    assert values_of_inputs(model, [x]) == {"x": expected}


@pytest.mark.parametrize(
    ("operator", "limits", "expected"),
    [
        ("Equal", [WIDE], Constant(255)),
        ("Equal", [np.array(-1)], Constant(0)),
        ("Less", [np.arange(700)], Constant(255)),
        ("Clip", [np.array(-5), WIDE], Integers(0, 255)),
        ("Clip", [np.array(3), np.array(2**63 - 1)], Integers(3, 255)),
    ],
)
def test_integers_that_the_type_does_not_have_are_not_drawn(
    operator: str, limits: list[Any], expected: Draw
) -> None:
    x = GraphInput("x", (1,), BYTES)
    names = [f"limit{at}" for at in range(len(limits))]
    nodes = [node("Cast", "x", "i", to=7), node(operator, " ".join(["i", *names]), "y")]
    model = graph_of(nodes, [x], weights=dict(zip(names, limits, strict=True)))
    assert values_of_inputs(model, [x]) == {"x": expected}
    assert runs(model, [x])


def test_indices_lie_within_another_input() -> None:
    edges, features = GraphInput("edges", (2, 9), "int64"), GraphInput("x", (6, 3), "float32")
    nodes = [node("Gather", "edges zero", "from"), node("Gather", "x from", "y")]
    model = graph_of(nodes, [edges, features], weights={"zero": np.int64(0)})
    found = values_of_inputs(model, [edges, features])
    assert found["x"] == Normal()
    columns = found["edges"]
    assert isinstance(columns, Columns)
    assert columns.parts[0] == Integers(0, 5)


def test_each_column_has_its_own_table() -> None:
    table = GraphInput("table", (4, 2), "int64")
    weights = {"a": np.ones((3, 2), np.float32), "b": np.ones((700, 2), np.float32)}
    nodes = [
        node("Split", "table", "left right", axis=1),
        node("Gather", "a left", "one"),
        node("Gather", "b right", "two"),
        node("Add", "one two", "y"),
    ]
    model = graph_of(nodes, [table], weights=weights)
    expected = Columns(1, (Integers(0, 2), Integers(0, 699)))
    assert values_of_inputs(model, [table]) == {"table": expected}
    assert runs(model, [table])


def test_indices_from_the_end_are_made_right_and_change_nothing() -> None:
    nodes = [
        node("Less", "ids zero", "is_negative"),
        node("Add", "ids size", "from_end"),
        node("Where", "is_negative from_end ids", "index"),
        node("Gather", "table index", "y"),
    ]
    weights = {"table": TABLE, "zero": np.int64(0), "size": np.int64(30)}
    model = graph_of(nodes, [IDS], weights=weights)
    assert values_of_inputs(model, [IDS]) == {"ids": Integers(0, 29)}


def test_what_is_added_to_an_index_is_taken_off_its_bounds() -> None:
    nodes = [node("Add", "ids ten", "shifted"), node("Gather", "table shifted", "y")]
    model = graph_of(nodes, [IDS], weights={"table": TABLE, "ten": np.int64(10)})
    assert values_of_inputs(model, [IDS]) == {"ids": Integers(-10, 19)}


def test_classes_of_a_one_hot_coding_by_comparison_are_known() -> None:
    nodes = [
        node("Unsqueeze", "ids last", "column"),
        node("Equal", "column classes", "hot"),
        node("Cast", "hot", "y", to=1),
    ]
    weights = {"last": np.array([-1]), "classes": np.arange(257).reshape(1, 1, 257)}
    model = graph_of(nodes, [IDS], weights=weights)
    assert values_of_inputs(model, [IDS]) == {"ids": Integers(0, 256)}


def test_the_value_that_a_branch_compares_with_is_always_given() -> None:
    rate, sound = GraphInput("rate", (), "int64"), GraphInput("x", (4,), "float32")
    branches = {
        "then_branch": part_of([node("Relu", "x", "then_y")], {}, {"then_y": None}),
        "else_branch": part_of([node("Neg", "x", "else_y")], {}, {"else_y": None}),
    }
    nodes = [node("Equal", "rate wanted", "is_wanted"), node("If", "is_wanted", "y", **branches)]
    model = graph_of(nodes, [rate, sound], weights={"wanted": np.int64(16000)})
    assert values_of_inputs(model, [rate, sound])["rate"] == Constant(16000)


def test_indices_are_found_inside_of_branches() -> None:
    same, number = {"same": np.zeros((2, 5), np.int64)}, node("Gather", "table same", "else_y")
    branches = {
        "then_branch": part_of([node("Gather", "table ids", "then_y")], {}, {"then_y": None}),
        "else_branch": part_of([number], {}, {"else_y": None}, same),
    }
    flag = GraphInput("flag", (), "bool")
    model = graph_of([node("If", "flag", "y", **branches)], [flag, IDS], weights={"table": TABLE})
    assert values_of_inputs(model, [flag, IDS]) == {"flag": None, "ids": Integers(0, 29)}


def test_indices_are_found_inside_of_loops() -> None:
    whole = onnx.TensorProto.INT64
    body = part_of(
        [
            node("Identity", "condition", "again"),
            node("Identity", "state", "state_out"),
            node("Gather", "table state", "row"),
        ],
        {
            "number": typed(whole, []),
            "condition": typed(onnx.TensorProto.BOOL, []),
            "state": typed(whole, [2, 5]),
        },
        {"again": None, "state_out": None, "row": None},
    )
    loop = node("Loop", "count _ ids", "last y", body=body)
    model = graph_of([loop], [IDS], "y", {"count": np.int64(3), "table": TABLE})
    assert values_of_inputs(model, [IDS]) == {"ids": Integers(0, 29)}


def test_lengths_are_those_of_the_whole_axis() -> None:
    lengths, x = GraphInput("lengths", (2,), "int32"), GraphInput("x", (7, 2, 3), "float32")
    weights = {"w": np.ones((1, 4, 3), np.float32), "r": np.ones((1, 4, 1), np.float32)}
    recurrent = node("LSTM", "x w r _ lengths", "y", hidden_size=1)
    model = graph_of([recurrent], [lengths, x], weights=weights)
    assert values_of_inputs(model, [lengths, x])["lengths"] == Constant(7)
    assert runs(model, [lengths, x])


def test_an_attention_mask_hides_nothing() -> None:
    mask, x = GraphInput("keep", (1, 5), "int64"), GraphInput("x", (1, 5), "float32")
    nodes = [
        node("Cast", "keep", "kept", to=1),
        node("Sub", "one kept", "hidden"),
        node("Mul", "hidden low", "penalty"),
        node("Add", "x penalty", "y"),
    ]
    weights = {"one": np.float32(1), "low": np.float32(-1e9)}
    model = graph_of(nodes, [mask, x], weights=weights)
    assert values_of_inputs(model, [mask, x]) == {"keep": Constant(1), "x": Normal()}


def test_categories_are_those_that_the_encoder_of_each_column_knows() -> None:
    texts = GraphInput("texts", (3, 2), "object")
    nodes = [
        node("Gather", "texts first", "one", axis=1),
        node("Gather", "texts second", "two", axis=1),
        node("OneHotEncoder", "one", "a", domain="ai.onnx.ml", cats_strings=["a", "b"], zeros=0),
        node("OneHotEncoder", "two", "b", domain="ai.onnx.ml", cats_strings=["x", "y"], zeros=0),
        node("Concat", "a b", "y", axis=-1),
    ]
    weights = {"first": np.array([0]), "second": np.array([1])}
    model = graph_of(nodes, [texts], weights=weights)
    expected = Columns(1, (OneOf(("a", "b")), OneOf(("x", "y"))))
    assert values_of_inputs(model, [texts]) == {"texts": expected}
    assert all(runs(model, [texts], seed) for seed in range(5))


def test_integer_keys_of_a_label_encoder_are_drawn() -> None:
    keys = GraphInput("keys", (8,), "int64")
    encoder = node(
        "LabelEncoder",
        "keys",
        "y",
        domain="ai.onnx.ml",
        keys_int64s=[5, 900, 17],
        values_floats=[0.5, 1.5, 2.5],
    )
    assert values_of_inputs(graph_of([encoder], [keys]), [keys]) == {"keys": OneOf((5, 900, 17))}


@pytest.mark.parametrize(
    ("dtype", "expected"),
    [("uint8", Integers(0, 255)), ("int8", Integers(-128, 127)), ("int32", Integers(0, 255))],
)
def test_integers_without_a_limit_are_never_only_0_and_1(dtype: str, expected: Integers) -> None:
    pixels = GraphInput("x", (4, 4), dtype)
    model = graph_of([node("Cast", "x", "y", to=1)], [pixels])
    assert values_of_inputs(model, [pixels]) == {"x": expected}


@pytest.mark.parametrize(
    ("name", "limit", "is_any"),
    [
        ("ids", node("Mod", "ids some", "y"), True),
        ("ids", node("Less", "ids some", "y"), True),
        ("ids", node("Gather", "some ids", "y"), False),
        ("ids", node("Cast", "ids", "y", to=9), True),
        ("speed", node("Mod", "speed some", "y"), False),
        ("mask", node("Mod", "mask some", "y"), False),
        ("position_ids", node("Mod", "position_ids some", "y"), False),
    ],
)
def test_integers_that_may_be_any_are_told_whatever_is_drawn(
    name: str, limit: onnx.NodeProto, *, is_any: bool
) -> None:
    ids = GraphInput(name, (1, 4), "int64")
    model = graph_of([limit], [ids], weights={"some": np.array([5, 900])})
    (rule,) = inferred_rules(model, [ids]).values()
    assert rule is not None
    assert rule.why.endswith(UNLIMITED) == is_any


def test_what_is_drawn_by_the_bases_rule_is_limited_by_the_heads_graph() -> None:
    table, hint = InputRule(Integers(0, 29), "indices"), InputRule(Integers(0, 255), UNLIMITED)
    limited, unlimited = with_own_limit(hint, table), with_own_limit(table, hint)
    assert limited == InputRule(Integers(0, 255), "indices")
    assert unlimited == InputRule(Integers(0, 29), f"indices, {UNLIMITED}")
    assert with_own_limit(hint, hint) is hint


MOVES: dict[str, tuple[onnx.NodeProto, dict[str, Any]]] = {
    "cast": (node("Cast", "in", "out", to=6), {}),
    "reshape": (node("Reshape", "in shape", "out"), {"shape": np.array([-1])}),
    "unsqueeze": (node("Unsqueeze", "in axes", "out"), {"axes": np.array([0])}),
    "transpose": (node("Transpose", "in", "out"), {}),
    "concat": (node("Concat", "in in", "out", axis=0), {}),
    "slice": (node("Slice", "in from to", "out"), {"from": np.array([0]), "to": np.array([1])}),
    "identity": (node("Identity", "in", "out"), {}),
    "add": (node("Add", "in three", "out"), {"three": np.int64(3)}),
    "double": (node("Mul", "in two", "out"), {"two": np.int64(2)}),
}


@settings(max_examples=30)
@given(moves=st.lists(st.sampled_from(sorted(MOVES)), max_size=5), seed=st.integers(0, 100))
def test_whatever_moves_the_indices_onnx_runtime_takes_them(moves: list[str], seed: int) -> None:
    nodes: list[onnx.NodeProto] = []
    weights: dict[str, Any] = {"table": np.ones((200, 1), np.float32)}
    name = "ids"
    for number, move in enumerate(moves):
        template, constants = MOVES[move]
        renamed = {each: f"{each}{number}" for each in ("out", *constants)} | {"in": name}
        inputs = " ".join(renamed[each] for each in template.input)
        nodes.append(node(template.op_type, inputs, renamed["out"]))
        nodes[-1].attribute.extend(template.attribute)
        dtype = np.int32 if "cast" in moves[:number] else np.int64
        for each, value in constants.items():
            weights[renamed[each]] = value.astype(dtype) if np.ndim(value) == 0 else value
        name = renamed["out"]
    nodes.append(node("Gather", f"table {name}", "y"))
    model = graph_of(nodes, [IDS], weights=weights)
    (values,) = values_of_inputs(model, [IDS]).values()
    assert values not in (None, Integers(0, 255), Integers(0, 1))
    assert runs(model, [IDS], seed)


def test_images_of_ultralytics_are_scaled_before() -> None:
    image = GraphInput("images", (1, 3, 16, 16), "float32")
    model = graph_of([node("Relu", "images", "y")], [image])
    assert values_of_inputs(model, [image]) == {"images": Normal()}
    onnx.helper.set_model_props(model, {"imgsz": "[16, 16]", "stride": "32", "task": "detect"})
    assert values_of_inputs(model, [image]) == {"images": Uniform(0.0, 1.0)}


X = GraphInput("x", (1, 3, 4, 4), "float32")
MEAN = np.array([123.0, 117.0, 104.0], np.float32).reshape(1, 3, 1, 1)
STD = np.array([58.0, 57.0, 56.0], np.float32).reshape(1, 3, 1, 1)
CHANNELS = Columns(1, (Normal(123.0, 58.0), Normal(117.0, 57.0), Normal(104.0, 56.0)))


@pytest.mark.parametrize(
    ("nodes", "weights", "expected"),
    [
        (
            [node("Sub", "x mean", "d"), node("Div", "d std", "y")],
            {"mean": MEAN, "std": STD},
            CHANNELS,
        ),
        (
            [node("Mul", "x half", "d"), node("Sub", "d one", "y")],
            {"half": np.float32(0.5), "one": np.float32(1)},
            Normal(2.0, 2.0),
        ),
        ([node("Div", "x most", "y")], {"most": np.float32(255)}, Uniform(0.0, 255.0)),
        ([node("Mul", "x share", "y")], {"share": np.float32(1 / 255)}, Uniform(0.0, 255.0)),
        (
            [node("Transpose", "x", "t"), node("Sub", "t mean", "y")],
            {"mean": np.float32(127.5)},
            Uniform(0.0, 255.0),
        ),
        (
            [node("BatchNormalization", "x one one mean var", "y")],
            {"one": np.ones(3, np.float32), "mean": MEAN.ravel(), "var": STD.ravel() ** 2},
            CHANNELS,
        ),
        (
            [node("QuantizeLinear", "x scale zero", "y")],
            {"scale": np.float32(0.5), "zero": np.uint8(128)},
            Uniform(-64.0, 63.5),
        ),
        (
            [node("Sub", "one x", "d"), node("Mul", "d low", "y")],
            {"one": np.float32(1), "low": np.float32(-10000)},
            Constant(1),
        ),
        ([node("Log", "x", "y")], {}, Uniform(0.1, 2.0)),
        ([node("Cast", "x", "y", to=2)], {}, Uniform(0.0, 255.0)),
        ([node("Cast", "x", "c", to=1), node("Sqrt", "c", "y")], {}, Uniform(0.1, 2.0)),
        ([node("Mul", "x x", "y")], {}, Normal()),
        ([node("Add", "x one", "y")], {"one": np.float32(1)}, Normal()),
        ([node("Relu", "x", "y")], {}, Normal()),
        (
            [node("Div", "x huge", "d"), node("Sub", "d huge", "y")],
            {"huge": np.float32(1e30)},
            Normal(),
        ),
    ],
)
def test_floats_are_what_the_model_expects(
    nodes: list[Any], weights: dict[str, Any], expected: object
) -> None:
    model = graph_of(nodes, [X], weights=weights)
    assert values_of_inputs(model, [X]) == {"x": expected}
    assert runs(model, [X])


def test_a_scaler_gives_mean_and_deviation_of_each_feature() -> None:
    table = GraphInput("x", (2, 2), "float32")
    scaler = node("Scaler", "x", "y", domain="ai.onnx.ml", offset=[5.0, 1.0], scale=[0.5, 2.0])
    expected = Columns(1, (Normal(5.0, 2.0), Normal(1.0, 0.5)))
    assert values_of_inputs(graph_of([scaler], [table]), [table]) == {"x": expected}


@pytest.mark.parametrize(("limit", "draw"), [(100.0, Uniform(90.0, 110.0)), (0.5, Integers(0, 1))])
def test_features_of_trees_lie_around_their_thresholds(limit: float, draw: Draw) -> None:
    table = GraphInput("x", (2, 2), "float32")
    trees = node(
        "TreeEnsembleRegressor",
        "x",
        "y",
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0],
        nodes_values=[limit, 0.0, 0.0],
        nodes_modes=["BRANCH_LEQ", "LEAF", "LEAF"],
        nodes_truenodeids=[1, 0, 0],
        nodes_falsenodeids=[2, 0, 0],
        target_treeids=[0, 0],
        target_nodeids=[1, 2],
        target_ids=[0, 0],
        target_weights=[1.0, 2.0],
        n_targets=1,
    )
    model = graph_of([trees], [table])
    expected = Columns(1, (Normal(), draw))
    assert values_of_inputs(model, [table]) == {"x": expected}
    assert runs(model, [table])


SEEDS = tuple(range(100))


def cases(folder: Path, number: int) -> ArtifactTensor:
    files = [folder / f"{case}.npy" for case in range(number)]
    for case, file in enumerate(files):
        np.save(file, np.full(2, case, "float32"))
    names = tuple(file.name for file in files)
    return ArtifactTensor("x", (2,), "float32", InputRule(Files(tuple(map(str, files)), names)))


@pytest.mark.parametrize(("number", "used"), [(2, 1), (10, 2), (200, MAX_CALIBRATION_INPUTS)])
def test_no_case_calibrates_and_tells_the_error(tmp_path: Path, number: int, used: int) -> None:
    found, left = calibration([cases(tmp_path, number)], {"x"}, SEEDS, "m.onnx")
    learned = {f"{feed['x'][0]:.0f}.npy" for feed in found}
    assert len(learned) == used
    assert used == 1 or learned != {f"{case}.npy" for case in range(used)}
    (rule,) = (each.rule for each in left)
    assert rule is not None
    assert isinstance(rule.values, Files)
    assert {*rule.values.names} == {f"{case}.npy" for case in range(number)} - learned


def test_what_is_drawn_calibrates_on_inputs_of_its_own_seeds() -> None:
    drawn = ArtifactTensor("x", (2,), "float32", InputRule(Normal()))
    found, left = calibration([drawn], {"x"}, SEEDS, "m.onnx")
    assert len([*found]) == MAX_CALIBRATION_INPUTS
    assert len({float(feed["x"][0]) for feed in found}) == MAX_CALIBRATION_INPUTS
    assert left == (drawn,)
