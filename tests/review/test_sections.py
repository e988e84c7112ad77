from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import PolicyChange
from tunegate.config import GateConfig, TargetConfig
from tunegate.review.rules import GATE, TARGET, merged_section, section_changes

gates = st.builds(
    GateConfig,
    margin_percent=st.sampled_from([1.0, 3.0, 60.0]),
    seconds=st.sampled_from([30.0, 60.0]),
    inconclusive=st.sampled_from(["fail", "warn"]),
    size_margin_percent=st.none() | st.sampled_from([5.0, 10.0]),
)


def gate_changes(base: GateConfig, head: GateConfig) -> list[PolicyChange]:
    return list(section_changes(base, head, GATE, "gate", model="m.onnx"))


def target_changes(base: TargetConfig, head: TargetConfig) -> list[PolicyChange]:
    return list(section_changes(base, head, TARGET, "targets[]", target=base.name))


def test_the_stricter_value_of_an_ordered_key_judges_whoever_wrote_it() -> None:
    strict, loose = GateConfig(margin_percent=1.0), GateConfig(margin_percent=60.0)
    assert merged_section(strict, loose, GATE).margin_percent == 1.0
    assert merged_section(loose, strict, GATE).margin_percent == 1.0


def test_the_base_decides_a_key_without_an_order() -> None:
    assert merged_section(GateConfig(seconds=30.0), GateConfig(seconds=60.0), GATE).seconds == 30.0


def test_the_head_may_fill_what_the_base_has_left_open_and_only_that() -> None:
    unpriced, priced = TargetConfig(name="cpu"), TargetConfig(name="cpu", usd_per_hour=2.0)
    dearer = TargetConfig(name="cpu", usd_per_hour=9.0)
    assert merged_section(unpriced, priced, TARGET).usd_per_hour == 2.0
    assert merged_section(priced, dearer, TARGET).usd_per_hour == 2.0


@given(gates, gates)
def test_no_change_is_told_of_equal_sections_and_one_of_every_key_that_differs(
    base: GateConfig, head: GateConfig
) -> None:
    fields = [field.name for field in msgspec.structs.fields(base)]
    differing = [name for name in fields if getattr(base, name) != getattr(head, name)]
    assert len(gate_changes(base, head)) == len(differing)
    assert gate_changes(base, base) == []


@pytest.mark.parametrize(
    ("new", "effect", "counts"),
    [(1.0, "tightened", "now"), (60.0, "loosened", "once merged")],
)
def test_a_stricter_value_counts_now_and_a_looser_one_once_merged(
    new: float, effect: str, counts: str
) -> None:
    (change,) = gate_changes(GateConfig(margin_percent=3.0), GateConfig(margin_percent=new))
    assert (change.key, change.model) == ("gate.margin-percent", "m.onnx")
    assert (change.old, change.new) == ("3", f"{new:g}")
    assert (change.effect, change.counts) == (effect, counts)


def test_a_key_without_an_order_is_changed_and_counts_once_merged() -> None:
    (change,) = gate_changes(GateConfig(seconds=30.0), GateConfig(seconds=60.0))
    assert (change.effect, change.counts) == ("changed", "once merged")


def test_filling_tightens_clearing_loosens_and_another_value_changes() -> None:
    unpriced, priced = TargetConfig(name="cpu"), TargetConfig(name="cpu", usd_per_hour=2.0)
    dearer = TargetConfig(name="cpu", usd_per_hour=9.0)
    effects = [
        (change.effect, change.counts)
        for pair in ((unpriced, priced), (priced, unpriced), (priced, dearer))
        for change in target_changes(*pair)
    ]
    assert effects == [
        ("tightened", "now"),
        ("loosened", "once merged"),
        ("changed", "once merged"),
    ]
