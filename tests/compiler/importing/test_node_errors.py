"""A refusal says the operator, its node, and what is missing."""

from __future__ import annotations

import pytest
from onnx import helper

from tunegate.compiler.importing.node_errors import NodeError, importing, shortened
from tunegate.errors import UnsupportedModelError

NODE = helper.make_node("Attention", ["q", "w"], ["y"], name="block/attention")


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (KeyError("w"), "reads w, which the compiler's importer does not know there"),
        (KeyError("num_heads"), "has no num_heads, which the compiler's importer asks for"),
        (AssertionError(), "cannot be imported by the compiler (AssertionError)"),
        (AssertionError("."), "cannot be imported by the compiler (AssertionError)"),
        (
            ValueError("first\n  rank 5 is one too many."),
            "cannot be imported by the compiler (ValueError: rank 5 is one too many)",
        ),
        (
            ValueError('Cannot parse attribute: \nname: "axes"\ntype: INTS\n\n.'),
            'cannot be imported by the compiler (ValueError: Cannot parse attribute: name: "axes"',
        ),
        (
            NotImplementedError("Only const k is not supported"),
            "is not supported by the compiler (Only const k is not supported)",
        ),
        (UnsupportedModelError(), "is not supported by the compiler"),
        (UnsupportedModelError("its k is an input"), "is not supported by the compiler: its k"),
    ],
)
def test_what_a_converter_raises_becomes_a_sentence(error: Exception, said: str) -> None:
    with pytest.raises(NodeError) as caught, importing(NODE):
        raise error
    assert str(caught.value).startswith(f'operator Attention (node "block/attention") {said}')


def test_a_node_without_a_name_is_called_by_what_it_gives() -> None:
    error = NodeError(helper.make_node("TopK", ["x", "k"], ["values", "indices"]), KeyError("k"))
    assert str(error).startswith("operator TopK (the node that makes values) reads k")


def test_a_lack_of_memory_is_no_fault_of_a_node() -> None:
    with pytest.raises(MemoryError), importing(NODE):
        raise MemoryError


def test_a_long_message_is_cut_between_words_and_an_operator_called_by_its_name() -> None:
    told = shortened('ir.Op(span=None, name="relax.nn.conv2d", attrs=1) takes ' + "12345 " * 100)
    assert told.startswith("relax.nn.conv2d takes 12345")
    assert told.endswith("12345 …")
    assert len(told) <= 302
