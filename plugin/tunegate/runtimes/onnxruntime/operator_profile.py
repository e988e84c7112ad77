"""How long the operators of a model take under ONNX Runtime, by its own profiler."""

from __future__ import annotations

import statistics
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import msgspec
import onnx

from tunegate.edges.models.deciding_values import nodes_of
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
    ts: int = 0
    tid: int = 0
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
    kernels = [each for each in events if each.cat == "Node" and each.name.endswith(_KERNEL)]
    for event, microseconds in _own_times(kernels):
        found[layers.named(event)].append(microseconds)
    return {name: _each_ms(times, inferences + 1) for name, times in found.items()}


def _own_times(events: Iterable[_Event]) -> list[tuple[_Event, int]]:
    """The microseconds of each event without those inside of it: a loop lasts as long as its body,
    and the body's operators are told by themselves."""
    own: list[tuple[_Event, int]] = []
    around: list[int] = []
    for event in sorted(events, key=lambda each: (each.tid, each.ts, -each.dur)):
        while around and not _is_inside(event, own[around[-1]][0]):
            around.pop()
        if around:
            outer, microseconds = own[around[-1]]
            own[around[-1]] = outer, max(0, microseconds - event.dur)
        around.append(len(own))
        own.append((event, event.dur))
    return own


def _is_inside(event: _Event, outer: _Event) -> bool:
    return event.tid == outer.tid and event.ts + event.dur <= outer.ts + outer.dur


def _each_ms(microseconds: list[int], inferences: int) -> float:
    """Some nodes of one name may run in each inference: their times are added up."""
    calls = max(1, len(microseconds) // inferences)
    sums = [sum(microseconds[i : i + calls]) for i in range(0, len(microseconds), calls)]
    return statistics.median(sums[1:] or sums) / 1e3


class _Layers:
    """The model's own names for what the optimizer made of it."""

    def __init__(self, model: onnx.ModelProto) -> None:
        nodes = list(nodes_of(model))
        self._named = {node.name: node for node in nodes if node.name}
        self._makers = {out: node for node in nodes for out in node.output}

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
