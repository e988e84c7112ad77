from __future__ import annotations

from tests.support import report_parts as parts
from tunegate.decide.slow_layers import cell_names, on_cell


def test_a_step_names_its_cell() -> None:
    finding = parts.finding("fail", "")
    assert on_cell(finding, " fails.").text == "models/squeezenet.onnx on cpu fails."
    assert on_cell(finding, " fails.", before="The head of ").text.startswith("The head of models/")
    assert len(cell_names(finding)) == 3
