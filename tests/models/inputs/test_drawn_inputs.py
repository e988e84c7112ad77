from pathlib import Path

import numpy as np
import onnx
import pytest

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.present import present
from tunegate.artifacts.inputs import (
    DRAWN_LENGTH,
    STANDARD,
    Constant,
    Files,
    InputRule,
    Integers,
    KnownInputs,
    Normal,
    Uniform,
)
from tunegate.errors import ModelError
from tunegate.models import seeded_inputs
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.drawn_inputs import draw_inputs
from tunegate.models.inputs.facts import facts_of
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate.report.report_tables import type_in_words, values_in_words

IDS = GraphInput("ids", (2, 5), "int64")


def _lookup(rows: int, extra: int = 0) -> onnx.ModelProto:
    """A table of so many rows; `extra` is the size of another one, whose product is nothing."""
    weights = {"table": np.ones((rows, 4), np.float32)}
    if not extra:
        return graph_of([node("Gather", "table ids", "y")], [IDS], weights=weights)
    nodes = [
        node("Gather", "table ids", "row"),
        node("Clip", "ids zero most", "small"),
        node("Gather", "tiny small", "other"),
        node("Mul", "other none", "nothing"),
        node("Add", "row nothing", "y"),
    ]
    weights |= {"tiny": np.ones((extra, 4), np.float32), "none": np.float32(0)}  # type: ignore[dict-item]
    weights |= {"zero": np.int64(0), "most": np.int64(extra - 1)}  # type: ignore[dict-item]
    return graph_of(nodes, [IDS], weights=weights)


def _prepared(model: onnx.ModelProto, at: Path, **shapes: tuple[int, ...]) -> PreparedModel:
    file = at / "m.onnx"
    onnx.save(model, file)
    return prepare(file, shapes=shapes, into=at / "m", path=file.name)


def _rules(model: onnx.ModelProto, at: Path, known: KnownInputs) -> dict[str, InputRule | None]:
    tensors = draw_inputs(_prepared(model, at), known, "m.onnx").tensors
    return {tensor.name: tensor.rule for tensor in tensors}


def _beside(base: onnx.ModelProto, at: Path) -> KnownInputs:
    onnx.save(base, at / "base.onnx")
    return KnownInputs(base=str(at / "base.onnx"))


def test_values_are_inferred_where_nothing_is_known(tmp_path: Path) -> None:
    (rule,) = _rules(_lookup(30), tmp_path, KnownInputs()).values()
    assert present(rule).values == Integers(0, 29)


def test_a_head_that_asks_for_easier_values_gets_those_of_its_base(tmp_path: Path) -> None:
    easier = _lookup(30, extra=2)
    (own,) = _rules(easier, tmp_path, KnownInputs()).values()
    (rule,) = _rules(easier, tmp_path, _beside(_lookup(30), tmp_path)).values()
    assert (present(own).values, present(rule).values) == (Integers(0, 1), Integers(0, 29))


def test_a_smaller_vocabulary_gets_what_both_know(tmp_path: Path) -> None:
    (rule,) = _rules(_lookup(20), tmp_path, _beside(_lookup(30), tmp_path)).values()
    assert present(rule).values == Integers(0, 19)


def test_an_empty_input_is_drawn_empty_whatever_reads_it(tmp_path: Path) -> None:
    """A table of no rows, and rows of no columns."""
    nodes = [
        node("Gather", "table none", "y"),
        node("Scaler", "rows", "z", domain="ai.onnx.ml", scale=[0.5], offset=[1.0]),
        node("Gather", "rows ids", "t", axis=1),
        node("Identity", "texts", "f"),
    ]
    inputs = [
        GraphInput("none", (0,), "int64"),
        GraphInput("rows", (2, 0), "float32"),
        GraphInput("ids", (0,), "int64"),
        GraphInput("texts", (2, 0), "object"),
    ]
    model = graph_of(nodes, inputs, "y z t f", {"table": np.ones((0, 4), np.float32)})
    tensors = draw_inputs(_prepared(model, tmp_path), KnownInputs(), "m.onnx").tensors
    shapes = {name: array.shape for name, array in seeded_inputs.seeded_inputs(tensors, 1).items()}
    assert shapes == {each.name: each.shape for each in inputs}


def _of_sequence(*shape: int | str) -> onnx.ModelProto:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.INT64, shape)
    parts = onnx.helper.make_value_info("parts", onnx.helper.make_sequence_type_proto(tensor))
    nodes = [node("SequenceAt", "parts at", "ids"), node("Gather", "table ids", "y")]
    weights = {"table": np.ones((7, 2), np.float32), "at": np.int64(1)}
    model = graph_of(nodes, [], weights=weights)
    model.graph.input.append(parts)
    return model


def test_a_sequence_is_drawn_with_as_many_tensors_as_the_report_says(tmp_path: Path) -> None:
    tensors = draw_inputs(_prepared(_of_sequence(2), tmp_path), KnownInputs(), "m.onnx").tensors
    (parts,) = seeded_inputs.seeded_inputs(tensors, 1).values()
    assert [each.shape for each in parts] == [(2,)] * DRAWN_LENGTH
    assert values_in_words(tensors[0].as_reported()) == "3 tensors, 0 to 6"
    assert type_in_words(tensors[0].as_reported()) == "sequence of [2] int64"
    known = _beside(_of_sequence(2), tmp_path)
    assert draw_inputs(_prepared(_of_sequence(2), tmp_path), known, "m.onnx").tensors == tensors


def test_a_model_may_give_a_sequence_of_tensors_of_unlike_sizes(tmp_path: Path) -> None:
    inputs = [GraphInput("x", (2,), "float32"), GraphInput("z", (3, 1), "float32")]
    model = graph_of([node("SequenceConstruct", "x z", "y")], inputs)
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, None)
    model.graph.output[0].type.CopyFrom(onnx.helper.make_sequence_type_proto(tensor))
    outcome = present(draw_inputs(_prepared(model, tmp_path), KnownInputs(), "m.onnx").outcome)
    assert outcome.runs
    assert outcome.shapes == ((),)


def test_a_sequence_of_unknown_tensors_asks_for_values(tmp_path: Path) -> None:
    prepared = _prepared(_of_sequence("n"), tmp_path)
    with pytest.raises(ModelError) as caught:
        draw_inputs(prepared, KnownInputs(), "m.onnx")
    assert str(caught.value) == (
        "m.onnx: nothing says how large the tensors in parts are. "
        "Give values for parts under inputs: in tunegate.yaml."
    )
    file = seeded_inputs.save_value([np.array([1]), np.array([2, 3])], tmp_path / "parts")
    given = KnownInputs(given={"parts": InputRule(Files((str(file),)))})
    tensors = draw_inputs(prepared, given, "m.onnx").tensors
    (parts,) = seeded_inputs.seeded_inputs(tensors, 1).values()
    assert [each.tolist() for each in parts] == [[1], [2, 3]]
    assert type_in_words(tensors[0].as_reported()) == "sequence of int64"


def test_what_the_user_gives_comes_first(tmp_path: Path) -> None:
    given = InputRule(Constant(3), "given")
    known = KnownInputs(given={"ids": given})
    assert _rules(_lookup(30), tmp_path, known) == {"ids": given}


def test_plain_floats_need_no_trial(tmp_path: Path) -> None:
    floats = GraphInput("x", (4, 4), "float32")
    model = graph_of([node("Relu", "x", "y")], [floats])
    assert _rules(model, tmp_path, KnownInputs()) == {"x": InputRule(Normal())}


def _unforeseen(size: int) -> onnx.ModelProto:
    """A table whose rows are known by a product of two inputs only."""
    other = GraphInput("other", (2, 5), "int64")
    nodes = [
        node("Mul", "ids other", "product"),
        node("Add", "product far", "index"),
        node("Gather", "table index", "y"),
    ]
    weights = {"table": np.ones((size, 2), np.float32), "far": np.int64(size - 2)}
    return graph_of(nodes, [IDS, other], weights=weights)


def test_refused_values_are_tried_again_with_smaller_ones(tmp_path: Path) -> None:
    rules = _rules(_unforeseen(10), tmp_path, KnownInputs())
    assert {rule.values for rule in rules.values() if rule} == {Integers(0, 1)}


def test_a_model_that_takes_nothing_invented_asks_for_values(tmp_path: Path) -> None:
    nodes = [node("Add", "ids other", "shape"), node("Reshape", "x shape", "y")]
    count, x = GraphInput("ids", (2,), "int64"), GraphInput("x", (7,), "float32")
    with pytest.raises(ModelError) as raised:
        _rules(graph_of(nodes, [x, count, count._replace(name="other")]), tmp_path, KnownInputs())
    text = str(raised.value)
    assert "Give values for ids, other under inputs: in tunegate.yaml" in text
    assert "Reshape" in text
    assert "Fix the export" not in text


def test_a_head_that_refuses_what_its_base_takes_is_told_as_a_change(tmp_path: Path) -> None:
    """No values help: its Reshape asks for seven numbers."""
    (base := tmp_path / "base").mkdir()
    onnx.save(_lookup(30), base / "m.onnx")
    known = KnownInputs(base=str(base / "m.onnx"))
    nodes = [node("Gather", "table ids", "row"), node("Reshape", "row seven", "y")]
    weights = {"table": np.ones((30, 4), np.float32), "seven": np.array([7])}
    with pytest.raises(ModelError) as raised:
        _rules(graph_of(nodes, [IDS], weights=weights), tmp_path, known)
    text = str(raised.value)
    assert "ONNX Runtime runs the base on these inputs, and not the head (" in text
    assert "Reshape" in text
    assert "The change to the model does that" in text


def test_refused_values_of_the_user_are_told_with_the_reason(tmp_path: Path) -> None:
    np.save(tmp_path / "ids.npy", np.full((2, 5), 99))
    known = KnownInputs(given={"ids": InputRule(Files((str(tmp_path / "ids.npy"),)))})
    with pytest.raises(ModelError, match="values that are given for ids"):
        _rules(_lookup(30), tmp_path, known)


def test_refused_indices_are_as_many_as_onnx_runtime_says(tmp_path: Path) -> None:
    """The table's extent is known to ONNX Runtime alone."""
    nodes = [node("Compress", "table all", "rows", axis=0), node("Gather", "rows ids", "y")]
    weights = {
        "table": np.ones((200, 4), np.float32),
        "all": np.array([True] * 100 + [False] * 100),
    }
    model = graph_of(nodes, [IDS], weights=weights)
    (rule,) = _rules(model, tmp_path, KnownInputs()).values()
    assert present(rule).values == Integers(0, 99)


def test_only_the_input_that_is_refused_gets_less(tmp_path: Path) -> None:
    """Tokens keep their vocabulary beside an input that the model refuses to take as invented."""
    other = GraphInput("kind", (2, 5), "int64")
    nodes = [
        node("Mul", "kind kind", "square"),
        node("Gather", "tiny square", "of_kind"),
        node("Gather", "table ids", "row"),
        node("Add", "row of_kind", "y"),
    ]
    weights = {"table": np.ones((5000, 4), np.float32), "tiny": np.ones((2, 4), np.float32)}
    model = graph_of(nodes, [IDS, other], weights=weights)
    values = {
        name: rule and rule.values for name, rule in _rules(model, tmp_path, KnownInputs()).items()
    }
    assert values == {"ids": Integers(0, 4999), "kind": Integers(0, 1)}


def _recognizer(*sides: str | int) -> onnx.ModelProto:
    """Takes images whose heights are halved to one of four rows."""
    model = graph_of(
        [node("Reshape", "x four", "rows"), node("Relu", "rows", "y")],
        [GraphInput("x", (1, 3, 32, 320), "float32")],
        weights={"four": np.array([1, 3, 32, -1])},
    )
    dims = model.graph.input[0].type.tensor_type.shape.dim
    for dim, side in zip(dims, sides, strict=True):
        dim.Clear()
        if isinstance(side, str):
            dim.dim_param = side
        else:
            dim.dim_value = side
    return model


def test_a_refused_size_is_told_as_a_size(tmp_path: Path) -> None:
    prepared = _prepared(_recognizer(1, 3, "H", "W"), tmp_path, x=(1, 3, 25, 25))
    with pytest.raises(ModelError) as raised:
        draw_inputs(prepared, KnownInputs(), "m.onnx")
    text = str(raised.value)
    assert text.startswith("m.onnx: ONNX Runtime does not run at H 25, W 25, whatever the values (")
    assert "Give sizes that the model takes under dims: or inputs: in tunegate.yaml." in text
    assert "Give values" not in text


def _above(limit: float) -> onnx.ModelProto:
    """Returns 1 wherever an image is above the limit, which standard normal numbers are not."""
    nodes = [node("Greater", "x limit", "is_above"), node("Cast", "is_above", "y", to=1)]
    image = GraphInput("x", (1, 3, 16, 16), "float32")
    return graph_of(nodes, [image], weights={"limit": np.float32(limit)})


def test_floats_on_which_a_model_tells_nothing_are_drawn_otherwise(tmp_path: Path) -> None:
    (rule,) = _rules(_above(40), tmp_path, KnownInputs()).values()
    assert rule is not None
    assert rule.values == Uniform(0.0, 255.0)
    assert rule.why == "on standard normal numbers its outputs tell nothing"


def test_floats_that_nothing_makes_lively_stay_and_are_told(tmp_path: Path) -> None:
    drawing = draw_inputs(_prepared(_above(1e9), tmp_path), KnownInputs(), "m.onnx")
    assert [each.rule for each in drawing.tensors] == [STANDARD]
    assert present(drawing.outcome).dull == "its outputs are the same whatever it is given"


def test_no_input_that_tells_an_error_was_learned_from() -> None:
    assert len({*seeded_inputs.error_seeds(74), *seeded_inputs.calibration_seeds(32)}) == 74 + 32


def test_the_first_cases_are_from_all_of_a_list() -> None:
    order = seeded_inputs.lasting_order(100)
    assert sorted(order) == [*range(100)]
    assert min(order[:20]) < 20
    assert max(order[:20]) >= 80


def test_many_categories_are_thinned_out() -> None:
    texts = GraphInput("i", (2,), "object")
    keys = [f"word-{number}" for number in range(5000)]
    encoder = node(
        "LabelEncoder", "i", "y", domain="ai.onnx.ml", keys_strings=keys, values_int64s=[0] * 5000
    )
    (fact,) = facts_of(texts, Dataflow(graph_of([encoder], [texts]), [texts]))
    assert len(fact.values) == 1000
    assert {*fact.values} < {*keys}


def test_words_of_a_text_that_is_taken_apart_are_joined() -> None:
    texts = GraphInput("i", (2,), "object")
    model = graph_of(
        [
            node("Tokenizer", "i", "t", domain="com.microsoft", mark=0),
            node("TfIdfVectorizer", "t", "y", pool_strings=["a", "b"]),
        ],
        [texts],
    )
    (fact,) = facts_of(texts, Dataflow(model, [texts]))
    assert (fact.values, fact.words) == (("a", "b"), 8)


@pytest.mark.parametrize("size", ["n", 2**28])
def test_inputs_that_fill_the_memory_are_not_drawn(tmp_path: Path, size: str | int) -> None:
    inputs = [GraphInput("x", (size, 1), "float32")]  # type: ignore[arg-type]
    model = graph_of([node("Shape", "x", "y")], inputs)
    prepared = _prepared(model, tmp_path, **({"x": (2**28, 1)} if size == "n" else {}))
    where = "n 268435456" if size == "n" else "the sizes that it states"
    remedy = "Give the sizes that you" if size == "n" else "Export it with the sizes that you"
    with pytest.raises(ModelError) as caught:
        draw_inputs(prepared, KnownInputs(), "m.onnx")
    said = f"m.onnx: its inputs take 1,024 MiB at {where}, and at most 512 MiB are drawn. {remedy}"
    assert str(caught.value).startswith(said)


def test_outputs_that_fill_the_memory_are_not_compared(tmp_path: Path) -> None:
    inputs, wide = [GraphInput("x", (1,), "float32")], {"wide": np.array([2**28 + 2**18])}
    prepared = _prepared(graph_of([node("Expand", "x wide", "y")], inputs, weights=wide), tmp_path)
    said = "m.onnx: its outputs take 1,025 MiB at the sizes that it states, and at most 1,024 MiB"
    with pytest.raises(ModelError, match=said):
        draw_inputs(prepared, KnownInputs(), "m.onnx")
