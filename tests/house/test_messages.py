"""Messages are for people: no program of ours decides on their text."""

from __future__ import annotations

import ast

import pytest

from tests.house.message_logic import decisions_on_messages
from tests.house.sources import OURS, functions, name_of

NOTHING_BETTER = {
    # msgspec, OpenVINO and the importer of TVM say what they refuse, and where, in a text alone.
    "plugin/tunegate/review/config_problems.py problem_of",
    "plugin/tunegate/compiler/importing/import_onnx.py _reason",
    "plugin/tunegate/runtimes/openvino/model.py refusal_of",
    # Memory that was refused has no class of its own in TVM and ONNX Runtime.
    "plugin/tunegate/system/processes/memory_limit.py memory_problem",
    # ONNX Runtime says which indices and which sizes it takes in the text of a refusal alone.
    "plugin/tunegate/models/inputs/drawn_inputs.py _stated_bound",
    "plugin/tunegate/models/size_trials.py _named_sizes",
    # A refusal is shown without the name of its model, which stands beside it.
    "plugin/tunegate/models/trial_child.py handle_request",
    "benchmarks/real_models/collected_files.py show",
    # The rules of a CI host look into a refusal: is it one line, and does it show a token?
    "plugin/tunegate/ci/conformance.py _no_event",
    "plugin/tunegate/ci/conformance.py _refused_comment",
}
"""Reviewed: what a library tells by its text alone."""


def test_nothing_is_decided_by_the_text_of_a_message() -> None:
    deciding = {
        f"{name_of(path)} {function.name}"
        for path in OURS
        if not path.name.startswith("test_")
        for function in functions(path)
        if any(decisions_on_messages(function))
    }
    assert deciding == NOTHING_BETTER


@pytest.mark.parametrize(
    "statement",
    [
        "return str(error) == 'gone'",
        "return 'gone' in str(error).lower()",
        "return f'{error}'.startswith('gone')",
        "return error.args[0].endswith('gone')",
        "return re.search('gone', str(error))",
        "text = str(error); return 'gone' in text",
        "text = str(error); return any(word in text for word in WORDS)",
        "return measured.detail.startswith('the worker was exited')",
        "return measured.reason == 'the worker was exited'",
        "return head.problem == heads.LATER",
        "detail = measured.detail; return detail.startswith('gone')",
    ],
)
def test_a_decision_on_a_message_is_found(statement: str) -> None:
    assert any(decisions_on_messages(function_with(statement)))


@pytest.mark.parametrize(
    "statement",
    [
        "return str(error)",
        "return f'gone: {error}'",
        "return isinstance(error, KeyError)",
        "return measured.reason is None",
        "return measured.reason == 'timeout'",
        "return str(error).splitlines()[-1]",
        "message = str(error); return message if message.endswith('.') else f'{message}.'",
    ],
)
def test_showing_a_message_is_no_decision(statement: str) -> None:
    assert not any(decisions_on_messages(function_with(statement)))


def function_with(statement: str) -> ast.FunctionDef:
    (function,) = ast.parse(f"def f(error: ValueError, measured):\n    {statement}").body
    assert isinstance(function, ast.FunctionDef)
    return function
