"""How long the operators of a model take under ONNX Runtime, by its own profiler."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
import onnx

from tunegate.runtimes.onnxruntime.session import opened

_KERNEL = "_kernel_time"
_REORDERED = "_nchwc"
_FUSED_AT_MOST = 3


class _Details(msgspec.Struct):
    op_name: str = ""
    node_index: str = ""


class _Event(msgspec.Struct):
    cat: str
    name: str
    dur: int
    args: _Details = msgspec.field(default_factory=_Details)


def profiled_ms(
    model: Path, feed: Mapping[str, Any], threads: int, inferences: int
) -> dict[str, float]:
    """Milliseconds in one inference by node name: the median, the first inference aside."""
    with tempfile.TemporaryDirectory() as folder:
        session = opened(model, threads, profile=Path(folder) / "profile")
        for _ in range(inferences + 1):
            session.run(None, dict(feed))
        events = msgspec.json.decode(Path(session.end_profiling()).read_bytes(), type=list[_Event])
    layers = _Layers(onnx.load(model, load_external_data=False))
    found: dict[str, list[int]] = defaultdict(list)
    for event in events:
        if event.cat == "Node" and event.name.endswith(_KERNEL):
            found[layers.named(event)].append(event.dur)
    return {name: _each_ms(microseconds, inferences + 1) for name, microseconds in found.items()}


def _each_ms(microseconds: list[int], inferences: int) -> float:
    """Some nodes of one name may run in each inference: their times are added up."""
    calls = max(1, len(microseconds) // inferences)
    sums = [sum(microseconds[i : i + calls]) for i in range(0, len(microseconds), calls)]
    return statistics.median(sums[1:] or sums) / 1e3


class _Layers:
    """The model's own names for what the optimizer made of it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        self._named = {node.name: node for node in model.graph.node if node.name}
        self._makers = {out: node for node in model.graph.node for out in node.output}

    def named(self, event: _Event) -> str:
        """A fused node is called like its last operator; people know it by its
        first, which does the work."""
        name = event.name.removesuffix(_KERNEL).removesuffix(_REORDERED)
        node = self._named.get(name)
        for _ in range(_FUSED_AT_MOST):
            if node is None or node.op_type == event.args.op_name:
                break
            node = self._makers.get(node.input[0]) if node.input else None
        if node is not None and node.name and node.op_type == event.args.op_name:
            return str(node.name)
        return name or f"{event.args.op_name}_{event.args.node_index}"
