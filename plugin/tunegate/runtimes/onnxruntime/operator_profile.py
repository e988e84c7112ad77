"""Times of a model's operators under ONNX Runtime, by its own profiler."""

import re
import statistics
from collections import defaultdict
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any, Protocol

import msgspec
import onnx

from tunegate.models import narrow_types
from tunegate.system.onnx_scan import nodes_of
from tunegate.system.output.temporary_folder import TemporaryFolder

_KERNEL = "_kernel_time"
_ADDED = re.compile(r"_nchwc(__?\w*\d+)?$|_token_\d+$")
"""Suffixes that the optimizer adds to names."""
_INSERTED = re.compile(r"Reorder(In|Out)put|Memcpy\w+")
_FUSION = re.compile(r"(.+)/\w+Fusion/?")
"""The name of a node that takes the place of several begins with that of the first."""
_OF_THE_RUNTIME = "changes of layout by ONNX Runtime"
_FUSED_AT_MOST = 3
_MAX_SAVED_BYTES = 256_000_000


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


class OpensProfiled(Protocol):
    """Opens a session whose profile and optimized graph go to these files."""

    def __call__(self, *, profile: Path, optimized: Path | None) -> Any: ...


def profiled_ms(
    model: Path, feed: Mapping[str, Any], inferences: int, opened: OpensProfiled
) -> dict[str, float]:
    """Returns the milliseconds of each node in one inference, by name: the median, without the
    first inference. Nodes inserted by ONNX Runtime count for the layer they serve."""
    session = ProfiledSession(model, feed, opened)
    for _ in range(inferences + 1):
        session.infer()
    each = session.inferences_ms()
    counting = each[1:] or each
    return {name: statistics.median(times[name] for times in counting) for name in each[0]}


class ProfiledSession:
    """A session that profiles its nodes."""

    def __init__(self, model: Path, feed: Mapping[str, Any], opened: OpensProfiled) -> None:
        self._proto = onnx.load(model, load_external_data=False)
        self._folder = TemporaryFolder()
        folder = Path(self._folder.name)
        self._graph = folder / "optimized.onnx" if _may_be_saved(model, self._proto) else None
        self._session = opened(profile=folder / "profile", optimized=self._graph)
        self._feed, self._inferences = feed, 0

    def infer(self) -> None:
        self._inferences += 1
        narrow_types.run(self._session, self._feed)

    def inferences_ms(self) -> list[dict[str, float]]:
        """Ends profiling, and returns the milliseconds of each node in each inference."""
        with self._folder:
            profile = Path(self._session.end_profiling()).read_bytes()
            events = msgspec.json.decode(profile, type=list[_Event])
            graph = self._graph
            run = onnx.load(graph) if graph is not None and graph.exists() else onnx.ModelProto()
        layers = _Layers(self._proto, run)
        times_of: dict[str, list[int]] = defaultdict(list)
        kernels = [each for each in events if each.cat == "Node" and each.name.endswith(_KERNEL)]
        for event, microseconds in _own_times(kernels):
            times_of[layers.layer_of_event(event)].append(microseconds)
        sums = {name: _sums_ms(times, self._inferences) for name, times in times_of.items()}
        return [{name: each[at] for name, each in sums.items()} for at in range(self._inferences)]


def _may_be_saved(file: Path, model: onnx.ModelProto) -> bool:
    """Returns whether the graph is small enough to save: its weights are saved with it."""
    is_small = file.stat().st_size < _MAX_SAVED_BYTES
    external = onnx.TensorProto.EXTERNAL
    return is_small and all(each.data_location != external for each in model.graph.initializer)


def _own_times(events: Iterable[_Event]) -> list[tuple[_Event, int]]:
    """Returns the microseconds of each event without those inside it: a loop lasts as long as its
    body, whose operators count by themselves."""
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


def _sums_ms(microseconds: Sequence[int], inferences: int) -> list[float]:
    """Returns the milliseconds of each inference; several nodes of one name are added up. A node
    that runs more often in some inferences than in others has their mean in each."""
    calls, rest = divmod(len(microseconds), inferences)
    if rest:
        return [sum(microseconds) / inferences / 1e3] * inferences
    return [sum(microseconds[at * calls : (at + 1) * calls]) / 1e3 for at in range(inferences)]


class _Layers:
    """The model's own names for what the optimizer made of it."""

    def __init__(self, model: onnx.ModelProto, run: onnx.ModelProto) -> None:
        nodes = list(nodes_of(model))
        self._named = {node.name: node for node in nodes if node.name}
        self._makers = {out: node for node in nodes for out in node.output}
        self._run = {node.name: node for node in nodes_of(run)}
        self._inserted = InsertedNodes(nodes_of(run), self._user_name)

    def layer_of_event(self, event: _Event) -> str:
        """Returns an event's layer. An inserted node gets the name of its layer, or a description
        if that is unknown."""
        name = event.name.removesuffix(_KERNEL)
        layer = self._user_name(name, event.args.op_name) or self._inserted.layer_of(name)
        if layer:
            return layer
        if _INSERTED.fullmatch(event.args.op_name):
            return _OF_THE_RUNTIME
        return _ADDED.sub("", name) or f"{event.args.op_name}_{event.args.node_index}"

    def _user_name(self, name: str, operator: str) -> str:
        """Returns the user's name of a fused node: that of its first operator, which does the work.
        ONNX Runtime names it after the last one, or that one's output. A node of the user's may
        have a name that ends as the optimizer's names do."""
        plain = _ADDED.sub("", name)
        node = self._named.get(name) or self._named.get(plain) or self._makers.get(plain)
        for _ in range(_FUSED_AT_MOST):
            if node is None or node.op_type == operator:
                break
            node = self._makers.get(node.input[0]) if node.input else None
        if node is not None and node.op_type == operator:
            return str(node.name)
        return "" if _INSERTED.fullmatch(operator) else self._name_before_fusion(name, plain)

    def _name_before_fusion(self, name: str, plain: str) -> str:
        """Returns the user's node whose place a new one takes, with those beside it: the one that
        its name begins with, or that computed its result."""
        begins = _FUSION.fullmatch(plain)
        if begins and begins[1] in self._named:
            return begins[1]
        run = self._run.get(name)
        makers = (self._makers.get(each) for each in run.output) if run is not None else ()
        return next((str(node.name) for node in makers if node is not None), "")


# The layers that inserted nodes belong to, such as changes of layout by ONNX Runtime's optimizer.

_BEFORE_ITS_LAYER = "ReorderInput"
_MAX_STEPS = 8


class InsertedNodes:
    """The optimized graph. `user_name` returns a node's name for the user by its name and operator,
    '' for an unknown node."""

    def __init__(
        self, nodes: Iterable[onnx.NodeProto], user_name: Callable[[str, str], str]
    ) -> None:
        self._user_name = user_name
        self._named: dict[str, onnx.NodeProto] = {}
        self._makers: dict[str, onnx.NodeProto] = {}
        self._readers: dict[str, onnx.NodeProto] = {}
        for node in nodes:
            self._named[node.name] = node
            self._makers |= dict.fromkeys(node.output, node)
            for name in node.input:
                self._readers.setdefault(name, node)

    def layer_of(self, name: str) -> str:
        """Returns the layer whose result the node changes, or that it prepares a value for; '' if
        neither is known."""
        node = self._named.get(name)
        if node is None:
            return ""
        steps = [self._before, self._after]
        if node.op_type == _BEFORE_ITS_LAYER:
            steps.reverse()
        return next(filter(None, (self._first_known(node, step) for step in steps)), "")

    def _first_known(
        self, node: onnx.NodeProto, step: Callable[[onnx.NodeProto], onnx.NodeProto | None]
    ) -> str:
        at: onnx.NodeProto | None = node
        for _ in range(_MAX_STEPS):
            at = step(at) if at is not None else None
            layer = self._user_name(at.name, at.op_type) if at is not None else ""
            if layer:
                return layer
        return ""

    def _before(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        return self._makers.get(node.input[0]) if node.input else None

    def _after(self, node: onnx.NodeProto) -> onnx.NodeProto | None:
        return self._readers.get(node.output[0]) if node.output else None
