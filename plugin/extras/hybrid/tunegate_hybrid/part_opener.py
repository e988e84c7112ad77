"""Parts of a model, opened for the compiler: each once, whoever asks."""

from __future__ import annotations

from pathlib import Path

from tunegate.compiler.opening import OpenModel, OpenPrepared
from tunegate.errors import UnsupportedModelError
from tunegate.models.prepared import Compilable, PreparedModel, Tensor
from tunegate.models.saved_model import save
from tunegate_hybrid.model_graph import ModelGraph
from tunegate_hybrid.partition import ModelPart, part_of


class PartOpener:
    """Files of parts go to the directory `into`."""

    def __init__(self, graph: ModelGraph, open_part: OpenPrepared, into: Path) -> None:
        self.graph = graph
        self._open_part, self._into = open_part, into
        self._found: dict[tuple[int, ...], OpenModel | None] = {}

    @property
    def tried(self) -> int:
        """The number of parts of several nodes that were asked for."""
        return sum(len(nodes) > 1 for nodes in self._found)

    def take(self, nodes: tuple[int, ...], opened: OpenModel) -> None:
        """Takes in a part that is open already."""
        self._found[nodes] = opened

    def opened(self, nodes: tuple[int, ...]) -> OpenModel | None:
        """Returns None where the compiler does not take them."""
        if nodes not in self._found:
            self._found[nodes] = self._opened(nodes)
        return self._found[nodes]

    def _opened(self, nodes: tuple[int, ...]) -> OpenModel | None:
        part = part_of(self.graph.nodes, nodes, self.graph.outputs)
        try:
            return self._open_part(self._saved(part))
        except (UnsupportedModelError, ValueError):
            return None

    def _saved(self, part: ModelPart) -> PreparedModel:
        file = self._into / f"{len(self._found)}.onnx"
        self._into.mkdir(parents=True, exist_ok=True)
        save(self.graph.cut(part), file)
        return PreparedModel(
            original=file,
            weights=None,
            inputs=tuple(self._tensor(name) for name in part.inputs),
            outputs=part.outputs,
            make_compilable=lambda: Compilable(file, file),
        )

    def _tensor(self, name: str) -> Tensor:
        found = self.graph.type_of(name)
        return Tensor(name, found.shape or (), found.dtype)
