from __future__ import annotations

from tests.support import report_parts as parts
from tunegate.report.headline import described_change, policy_lines, summed_up, uncovered_line


def test_a_change_is_told_with_both_values_and_when_it_counts() -> None:
    told = described_change(parts.policy_change(model="m.onnx", target="cpu"))
    assert told == (
        "policy-change, loosened: gate.margin-percent of m.onnx on cpu: 3 → 60 "
        "(no effect on this verdict, counts once it is merged)"
    )
    assert described_change(parts.policy_change(counts="now")).endswith("3 → 60 (counts now)")


def test_so_many_changes_are_cut_and_counted() -> None:
    verdict = parts.verdict("pass", 0, policy_changes=(parts.policy_change(),) * 40)
    lines = policy_lines(verdict)
    assert (len(lines), lines[-1]) == (31, "policy-change: … and 10 more")


def test_the_headline_counts_what_weakens_the_gate() -> None:
    tighter = parts.policy_change(effect="tightened", counts="now")
    looser = parts.policy_change(effect="changed")
    assert summed_up(parts.verdict("pass", 0, policy_changes=(tighter,))) == ""
    told = parts.verdict("pass", 0, policy_changes=(looser, tighter))
    assert summed_up(told) == "1 policy-change, named below"
    forbidden = parts.verdict("fail", 1, policy_changes=(looser, looser), policy_fails=True)
    assert summed_up(forbidden) == "2 policy-changes, forbidden by gate.policy-changes"


def test_uncovered_files_are_named_and_the_rest_is_counted() -> None:
    assert uncovered_line(()) == ""
    assert uncovered_line(("a.onnx",)) == "No rule covers 1 model file: a.onnx."
    many = tuple(f"{number}.onnx" for number in range(60))
    assert uncovered_line(many).endswith("49.onnx and 10 more, all in changes.json.")
