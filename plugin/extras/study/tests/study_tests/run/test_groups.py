from __future__ import annotations

from pathlib import Path

import pytest
from tests.support.small_onnx import conv_model, save

from study_tests.run.test_work import AXES, subject
from tunegate_study.design.study_config import StudyConfig
from tunegate_study.run.groups import groups_of
from tunegate_study.study_file import parse_study


@pytest.fixture
def config(tmp_path: Path) -> StudyConfig:
    save(conv_model(), tmp_path / "m.onnx")
    return parse_study(f"models: [{tmp_path}/m.onnx]\n{AXES}", "s")


def test_what_compiles_is_built_apart_for_each_schedule_and_number_of_threads(
    config: StudyConfig,
) -> None:
    found, keys = subject(config)
    groups = groups_of(found, keys)
    assert [len(group.cells) for group in groups] == [1] * 6
    assert len({group.place for group in groups}) == 4
    assert len({group.reference for group in groups}) == 1
    assert {group.target.threads for group in groups} == {1, 2}
