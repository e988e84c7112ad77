from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.support.graphs import GraphInput, graph_of, node, runs, values_of_inputs
from tunegate.artifacts.inputs import Columns, Constant, Files, InputRule, Normal, Uniform
from tunegate.errors import ModelError
from tunegate.models.inputs.calibration import MAX_INPUTS, calibration
from tunegate.system.output.artifact_file import ArtifactTensor

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
            {
                "one": np.ones(3, np.float32),
                "mean": MEAN.ravel(),
                "var": STD.ravel() ** 2,
            },
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


def test_features_of_trees_lie_around_their_thresholds() -> None:
    table = GraphInput("x", (2, 2), "float32")
    trees = node(
        "TreeEnsembleRegressor",
        "x",
        "y",
        domain="ai.onnx.ml",
        nodes_treeids=[0, 0, 0],
        nodes_nodeids=[0, 1, 2],
        nodes_featureids=[1, 0, 0],
        nodes_values=[100.0, 0.0, 0.0],
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
    expected = Columns(1, (Normal(), Uniform(90.0, 110.0)))
    assert values_of_inputs(model, [table]) == {"x": expected}
    assert runs(model, [table])


SEEDS = tuple(range(100))


def cases(folder: Path, number: int) -> ArtifactTensor:
    files = [folder / f"{case}.npy" for case in range(number)]
    for case, file in enumerate(files):
        np.save(file, np.full(2, case, "float32"))
    names = tuple(file.name for file in files)
    return ArtifactTensor("x", (2,), "float32", InputRule(Files(tuple(map(str, files)), names)))


@pytest.mark.parametrize(("number", "used"), [(2, 1), (10, 2), (200, MAX_INPUTS)])
def test_no_case_both_calibrates_and_tells_the_error(
    tmp_path: Path, number: int, used: int
) -> None:
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
    assert len([*found]) == MAX_INPUTS
    assert len({float(feed["x"][0]) for feed in found}) == MAX_INPUTS
    assert left == (drawn,)


def test_an_input_without_values_is_named() -> None:
    floats = [ArtifactTensor(name, (2,), "float32") for name in ("x", "state")]
    index = ArtifactTensor("index", (1,), "int64")
    with pytest.raises(ModelError, match="there are none for state: write them under inputs"):
        calibration([*floats, index], {"x"}, SEEDS, "m.onnx")
