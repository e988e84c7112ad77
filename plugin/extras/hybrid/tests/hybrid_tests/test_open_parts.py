"""What the compiler takes is found out by asking it: alone, together, and by halves."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import onnx
import pytest
from tests.support.small_onnx import chain_model, parts_model, save

from tunegate.compiler.opening import OpenModel
from tunegate.errors import UnsupportedModelError
from tunegate.models.preparation import prepare
from tunegate.models.prepared import PreparedModel
from tunegate_cache.format.how_built import HowBuilt, mark_of
from tunegate_hybrid.open_parts import (
    SplitModel,
    opener_of,
    split_as,
    split_model,
)


class Compiler:
    """Takes models of up to `most` nodes without these operators or nodes, and remembers them."""

    def __init__(self, *refused: str, most: int = 1000) -> None:
        self.refused, self.most = set(refused), most
        self.asked: list[int] = []

    def __call__(self, prepared: PreparedModel) -> OpenModel:
        nodes = onnx.load(prepared.optimized).graph.node
        self.asked.append(len(nodes))
        names = {name for node in nodes for name in (node.op_type, node.name)}
        if names & self.refused or len(nodes) > self.most:
            raise UnsupportedModelError("no")
        return OpenModel(prepared, None, [])


def split(model: onnx.ModelProto, compiler: Compiler, into: Path) -> SplitModel:
    file = save(model, into / "m.onnx")
    prepared = prepare(file, shapes={}, into=into / "prepared", path="m.onnx")
    return split_model(prepared, compiler, into / "parts", "cannot be compiled")


def shape(found: SplitModel) -> list[tuple[bool, int]]:
    return [(part.is_compiled, len(part.nodes)) for part in found.parts]


def test_what_is_refused_alone_is_asked_about_once(tmp_path: Path) -> None:
    compiler = Compiler("Binarizer")
    found = split(parts_model(maps=4), compiler, tmp_path)
    assert shape(found) == [(True, 8), (False, 1), (True, 8)]
    assert compiler.asked == [1, 1, 8, 8]
    assert found.reason == "cannot be compiled"
    assert [part for part in found.parts if part.is_compiled] == list(found.opened)
    before, after = found.opened.values()
    assert [(tensor.shape, tensor.dtype) for tensor in after.prepared.inputs] == [
        ((1, 400_000), "float32")
    ]
    assert before.prepared.optimized != after.prepared.optimized


def test_a_node_that_is_refused_with_its_neighbours_only_is_found_by_halves(
    tmp_path: Path,
) -> None:
    class Odd(Compiler):
        def __call__(self, prepared: PreparedModel) -> OpenModel:
            nodes = onnx.load(prepared.optimized).graph.node
            self.refused = {"product5"} if len(nodes) > 1 else set()
            return super().__call__(prepared)

    found = split(chain_model(layers=16, width=128), Odd(), tmp_path)
    inside = [part.nodes for part in found.parts if part.is_compiled]
    assert not any(5 in nodes for nodes in inside)
    assert {0, 15} <= {place for nodes in inside for place in nodes}


def test_what_is_too_much_together_is_cut_in_the_middle(tmp_path: Path) -> None:
    found = split(chain_model(layers=16, width=128), Compiler(most=8), tmp_path)
    assert shape(found) == [(True, 8), (False, 1), (True, 7)]


def test_where_nothing_is_worth_it_the_reason_is_that_of_the_whole(tmp_path: Path) -> None:
    with pytest.raises(UnsupportedModelError, match="cannot be compiled"):
        split(parts_model(maps=4, size=10), Compiler("Binarizer"), tmp_path)
    with pytest.raises(UnsupportedModelError, match="cannot be compiled"):
        split(parts_model(maps=4), Compiler("Mul", "Relu", "Binarizer"), tmp_path / "none")


class Remembering:
    """A model of two chains of maps, and a compiler that is asked about its parts."""

    def __init__(self, maps: int, place: Path) -> None:
        self.compiler = Compiler("Binarizer")
        self.file = save(parts_model(maps=maps), place / "m.onnx")
        self.prepared = prepare(self.file, shapes={}, into=place / "p", path="m.onnx")
        self.opener = opener_of(self.prepared, self.compiler, place / "parts")

    def split(self, compiled: Iterable[int], graph: str = "") -> SplitModel:
        kept = (mark_of(graph or self.opener.graph.digest),)
        return split_as(self.opener, self.prepared, HowBuilt(compiled=tuple(compiled), kept=kept))


def test_a_cut_that_is_remembered_asks_about_its_own_parts_alone(tmp_path: Path) -> None:
    model = Remembering(4, tmp_path)
    assert shape(model.split(range(8))) == [(True, 8), (False, 9)]
    assert model.compiler.asked == [8]


@pytest.mark.parametrize(
    ("maps", "compiled"),
    [(4, ()), (4, range(-1, 3)), (4, range(14, 40)), (4, range(7, 10)), (34, range(0, 68, 2))],
)
def test_a_cut_that_does_not_fit_is_refused_before_the_compiler_is_asked(
    maps: int, compiled: Iterable[int], tmp_path: Path
) -> None:
    """Nothing, no such node, one of other operators, and more parts than a search tries."""
    model = Remembering(maps, tmp_path)
    with pytest.raises(UnsupportedModelError):
        model.split(compiled)
    assert model.compiler.asked == []


def test_a_cut_of_another_graph_is_refused_although_its_nodes_are_there(tmp_path: Path) -> None:
    """Weights that are folded otherwise move the nodes behind them."""
    model, other = Remembering(4, tmp_path / "a"), Remembering(5, tmp_path / "b")
    with pytest.raises(UnsupportedModelError):
        model.split(range(8), graph=other.opener.graph.digest)
