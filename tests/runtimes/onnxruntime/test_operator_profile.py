from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np

from tests.support.models.unusual import LOOP, model
from tests.support.small_onnx import conv_model, save
from tunegate.runtimes.onnxruntime.operator_profile import _Event, _own_times, profiled_ms
from tunegate.runtimes.onnxruntime.runtime import opened


def event(name: str, ts: int, dur: int, tid: int = 1) -> _Event:
    return _Event(cat="Node", name=name, dur=dur, ts=ts, tid=tid)


def test_a_loop_has_the_time_that_its_body_leaves() -> None:
    events = [
        event("body", 10, 30),
        event("inner", 12, 8),
        event("body", 50, 40),
        event("loop", 0, 100),
        event("next", 100, 5),
        event("elsewhere", 20, 7, tid=2),
    ]
    assert [(each.name, own) for each, own in _own_times(events)] == [
        ("loop", 30),
        ("body", 22),
        ("inner", 8),
        ("body", 40),
        ("next", 5),
        ("elsewhere", 7),
    ]


def test_the_parts_of_an_inference_add_up_to_no_more_than_the_whole(tmp_path: Path) -> None:
    proto = model(LOOP)
    proto.graph.node[2].name = "loop"
    (body,) = proto.graph.node[2].attribute
    for node in body.g.node:
        node.name = f"body_{node.op_type}"
    file = save(proto, tmp_path / "m.onnx")
    found = profiled_ms(file, {"x": np.ones(4, np.float32)}, 3, partial(opened, file, 1))
    assert set(found) == {"loop", "body_Sin", "body_Identity"}


def test_every_time_stands_under_a_name_of_the_model(tmp_path: Path) -> None:
    """ONNX Runtime inserts nodes that no exporter wrote where layouts are blocked."""
    proto = conv_model()
    for number, node in enumerate(proto.graph.node):
        node.name = f"layer{number}/{node.op_type}"
    file = save(proto, tmp_path / "m.onnx")
    (given,) = proto.graph.input
    shape = [dim.dim_value for dim in given.type.tensor_type.shape.dim]
    found = profiled_ms(file, {given.name: np.ones(shape, np.float32)}, 2, partial(opened, file, 1))
    assert found
    assert set(found) <= {node.name for node in proto.graph.node}
