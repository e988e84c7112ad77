from __future__ import annotations

from tests.support.graphs import GraphInput, graph_of, node
from tunegate.models.inputs.dataflow import Dataflow
from tunegate.models.inputs.facts import facts_of


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
