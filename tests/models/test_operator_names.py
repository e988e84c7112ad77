from __future__ import annotations

from onnx import helper

from tunegate.models.graph import operator_of


def test_an_operator_of_another_domain_is_another_operator() -> None:
    assert operator_of(helper.make_node("Attention", [], [])) == "Attention"
    ours = helper.make_node("Attention", [], [], domain="com.microsoft")
    assert operator_of(ours) == "com.microsoft.Attention"
