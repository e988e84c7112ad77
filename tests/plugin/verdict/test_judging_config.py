from __future__ import annotations

from collections.abc import Mapping

import msgspec

from tests.support.measured_cells import MODEL, make_changes, make_version
from tunegate.artifacts.changes import ModelPath, ModelVersion
from tunegate.artifacts.outlines import ModelInput, ModelOutline
from tunegate.config import Config, GateConfig, ModelConfig, TargetConfig
from tunegate.selection import shapes_for
from tunegate.verdict.judging_config import judging_config


class Outlines:
    """Models with one input `x` of these dimensions; none can be read where there are none."""

    def __init__(self, *dimensions: int | None) -> None:
        self.dimensions = dimensions

    def outline(self, version: ModelVersion) -> ModelOutline | None:
        if not self.dimensions:
            return None
        inputs = (ModelInput("x", self.dimensions),)
        return ModelOutline(graph_digest=version.content_digest, inputs=inputs, parts={})

    def models(self, revision: str) -> Mapping[ModelPath, ModelVersion]:
        raise NotImplementedError

    def earlier(self, version: ModelVersion) -> tuple[ModelVersion, int] | None:
        raise NotImplementedError

    def with_data_files(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        raise NotImplementedError

    def opened(self, version: ModelVersion) -> tuple[ModelVersion, str]:
        raise NotImplementedError

    def obstacle(self, revision: str, path: ModelPath) -> str:
        raise NotImplementedError


def config(batch: int, *, path: str = "**/*.onnx", margin_percent: float = 3.0) -> Config:
    return Config(
        models=(ModelConfig(path=path, inputs={"x": (batch, 8)}),),
        targets=(TargetConfig(name="cpu"),),
        gate=GateConfig(margin_percent=margin_percent),
    )


def test_without_a_configuration_of_the_base_the_heads_judges() -> None:
    head = config(4, margin_percent=60.0)
    assert judging_config(None, head, make_changes(), Outlines(None, 8)) is head


def test_the_bases_shapes_and_margin_judge_where_they_still_fit() -> None:
    base, head = config(1), config(4, margin_percent=60.0)
    judging = judging_config(base, head, make_changes(), Outlines(None, 8))
    assert judging.gate.margin_percent == 3.0
    assert shapes_for(judging, MODEL) == {"x": (1, 8)}


def test_the_heads_shapes_judge_where_the_model_takes_others_now_or_cannot_be_read() -> None:
    for outlines, batch in ((Outlines(4, 8), 4), (Outlines(), 1)):
        judging = judging_config(config(1), config(4), make_changes(), outlines)
        assert shapes_for(judging, MODEL) == {"x": (batch, 8)}


def test_a_model_that_has_moved_keeps_the_rules_of_the_path_that_it_had() -> None:
    base, head = config(1, path="old/*"), config(4)
    (change,) = make_changes().models
    old = msgspec.structs.replace(make_version("b"), path="old/m.onnx")
    batches = []
    for before in (old, None):
        moved = msgspec.structs.replace(change, base=before)
        changes = msgspec.structs.replace(make_changes(), models=(moved,))
        judging = judging_config(base, head, changes, Outlines(None, 8))
        batches.append(shapes_for(judging, MODEL)["x"][0])
    assert batches == [1, 4]


def test_a_model_that_the_head_has_no_more_is_not_asked_for() -> None:
    (change,) = make_changes().models
    gone = msgspec.structs.replace(change, kind="deleted", head=None)
    changes = msgspec.structs.replace(make_changes(), models=(gone,))
    judging = judging_config(config(1), config(4), changes, Outlines())
    assert shapes_for(judging, MODEL) == {"x": (4, 8)}
