from __future__ import annotations

from research.gate_rules.power import SLOWDOWNS, Alarms, Coverage, Verdicts
from research.gate_rules.rule_tables import alarms_table, coverage_table, verdicts_table


def cells(line: str) -> list[str]:
    return [cell.strip() for cell in line.replace("\N{NO-BREAK SPACE}", " ").strip("|").split("|")]


def test_a_rule_has_its_share_of_alarms_below_every_slowdown() -> None:
    shares = tuple(number / 100 for number in range(len(SLOWDOWNS)))
    head, _, row = alarms_table([Alarms("pyperf", shares)]).splitlines()
    assert cells(head) == ["rule", *(f"+{100 * each:g}%" for each in SLOWDOWNS)]
    assert cells(row) == ["pyperf", *(f"{100 * share:.1f}%" for share in shares)]


def test_the_name_of_a_rule_makes_no_cell_of_its_own() -> None:
    plain, odd = (
        alarms_table([Alarms(name, (0.0,) * len(SLOWDOWNS))]).splitlines()[2]
        for name in ("a", "a|b")
    )
    assert odd.replace(r"\|", "").count("|") == plain.count("|")


def test_outcomes_of_gates_are_shares_of_all() -> None:
    found = Verdicts(
        margin_percent=3.0,
        slowdown=0.05,
        outcomes=("fail", "fail", "pass", "inconclusive"),
        seconds=(10.0, 20.0, 30.0, 100.0),
    )
    row = cells(verdicts_table([found]).splitlines()[2])
    assert row[:3] == ["3%", "+5%", "4"]
    assert row[3:7] == ["50.0%", "25.0%", "25.0%", "0.0%"]
    assert row[7:] == ["25", "89"]


def test_coverage_has_a_row_for_each_number_of_launches() -> None:
    rows = coverage_table([Coverage(4, 0.951, 0.5), Coverage(9, 1.0, 0.0)]).splitlines()[2:]
    assert [cells(row) for row in rows] == [["4", "95.1%", "50.0%"], ["9", "100.0%", "0.0%"]]
