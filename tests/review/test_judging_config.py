from __future__ import annotations

import msgspec

from tests.support.measured_cells import MODEL, make_changes, make_version
from tests.support.models.outlines import Outlines
from tunegate.config import Config, GateConfig, ModelConfig, TargetConfig
from tunegate.review.gate_rules import judging_config
from tunegate.review.model_settings import shapes_for


def config(batch: int, *, path: str = "**/*.onnx", margin_percent: float = 3.0) -> Config:
    return Config(
        models=(ModelConfig(path=path, inputs={"x": (batch, 8)}),),
        targets=(TargetConfig(name="cpu"),),
        gate=GateConfig(margin_percent=margin_percent),
    )


def test_without_a_configuration_of_the_base_the_heads_judges() -> None:
    head = config(4, margin_percent=60.0)
    assert judging_config(None, head, make_changes(), Outlines(None, 8)) == head


def test_the_bases_shapes_and_margin_judge_where_they_still_fit() -> None:
    base, head = config(1), config(4, margin_percent=60.0)
    judging = judging_config(base, head, make_changes(), Outlines(None, 8))
    assert judging.gate.margin_percent == 3.0
    assert shapes_for(judging, MODEL, None).shapes == {"x": (1, 8)}


def test_the_heads_shapes_judge_where_the_model_takes_others_now_or_cannot_be_read() -> None:
    for outlines, batch in ((Outlines(4, 8), 4), (Outlines(), 1)):
        judging = judging_config(config(1), config(4), make_changes(), outlines)
        assert shapes_for(judging, MODEL, None).shapes == {"x": (batch, 8)}


def test_a_model_that_has_moved_keeps_the_rules_of_the_path_that_it_had() -> None:
    base, head = config(1, path="old/*"), config(4)
    (change,) = make_changes().models
    old = msgspec.structs.replace(make_version("b"), path="old/m.onnx")
    batches = []
    for before in (old, None):
        moved = msgspec.structs.replace(change, base=before)
        changes = msgspec.structs.replace(make_changes(), models=(moved,))
        judging = judging_config(base, head, changes, Outlines(None, 8))
        batches.append(shapes_for(judging, MODEL, None).shapes["x"][0])
    assert batches == [1, 4]


def test_a_model_that_the_head_has_no_more_is_not_asked_for() -> None:
    (change,) = make_changes().models
    gone = msgspec.structs.replace(change, kind="deleted", head=None)
    changes = msgspec.structs.replace(make_changes(), models=(gone,))
    judging = judging_config(config(1), config(4), changes, Outlines())
    assert shapes_for(judging, MODEL, None).shapes == {"x": (4, 8)}
