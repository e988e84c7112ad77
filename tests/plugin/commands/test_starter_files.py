from __future__ import annotations

import yaml

from tunegate.commands.starter_files import starter_config, starter_workflow
from tunegate.edges.config.file import parse_config
from tunegate.edges.models.finder import FoundModel, OpenInput


def test_the_configuration_that_is_written_can_be_read() -> None:
    config = parse_config(starter_config([FoundModel("a.onnx"), FoundModel("b.onnx")]), "x")
    assert [model.path for model in config.models] == ["a.onnx", "b.onnx"]
    assert (config.budget.minutes, config.gate.margin_percent) == (10, 3)


def test_a_path_may_hold_anything() -> None:
    odd = 'models/"two" # words: é.onnx'
    assert parse_config(starter_config([FoundModel(odd)]), "x").models[0].path == odd


def test_open_dimensions_are_shown_by_name_to_be_filled_in() -> None:
    model = FoundModel("a.onnx", (OpenInput("ids", ("batch", 128)),))
    text = starter_config([model])
    assert '#   "ids": [batch, 128]' in text
    filled = text.replace("    # inputs:", "    inputs:").replace(
        '    #   "ids": [batch', '      "ids": [1'
    )
    assert parse_config(filled, "x").models[0].inputs == {"ids": (1, 128)}


def test_why_inputs_are_not_known_is_a_comment() -> None:
    text = starter_config([FoundModel("a.onnx", note="its bytes are in Git LFS")])
    assert "    # its bytes are in Git LFS\n" in text
    assert parse_config(text, "x").models[0].inputs == {}


def test_the_workflow_is_one_that_github_reads() -> None:
    assert "jobs" in yaml.safe_load(starter_workflow())
