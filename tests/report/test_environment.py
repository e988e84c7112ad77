from __future__ import annotations

from tests.support.reports import make_report
from tunegate.report.environment import facts


def test_the_facts_name_revisions_changes_and_machine() -> None:
    told = dict(facts(make_report("measured")))
    assert told["Base"] == "4f2a1c9d8e7b"
    assert told["Change"] == "models/squeezenet.onnx: modified, structural (the graph differs)"
    assert told["Device"] == "AMD EPYC 7B13"
    assert told["cpu governor"] == "performance"


def test_without_a_measurement_there_is_no_machine_to_tell_of() -> None:
    assert "Device" not in dict(facts(make_report("identical")))
