from __future__ import annotations

import re

import pytest

from tunegate.cli.handlers.doctor_checks import budgets_check
from tunegate.review.config_file import parse_config

ENTRY = "models: [{{path: m.onnx, accuracy: {accuracy}, inputs: {{x: {{values: {values}}}}}}}]"


@pytest.mark.parametrize(
    ("accuracy", "values", "told"),
    [
        ("{max-error: 2}", "{file: x.npy}", "m.onnx: 1 case is given, and .* takes 59 cases"),
        ("{min-agreement: 98}", "{cases: [a.npy, b.npy]}", "2 cases are given, .* takes 149 cases"),
        ("{max-error: 2}", "{low: 0, high: 1}", ""),
        ("same", "{file: x.npy}", ""),
        ("{max-error: 2}", f"{{cases: {[f'{n}.npy' for n in range(59)]}}}", ""),
    ],
)
def test_too_few_cases_for_a_budget_are_told(accuracy: str, values: str, told: str) -> None:
    config = parse_config(ENTRY.format(accuracy=accuracy, values=values), "tunegate.yaml")
    found = [each.detail for each in budgets_check(config, ["m.onnx"])]
    assert len(found) == bool(told)
    if told:
        assert re.search(told, found[0])
