"""Compares an evidence with what a gate asks: as strict, at its sizes, on its targets.

Which of two values is stricter is declared with each key (`tunegate/config.py`). Pure.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import msgspec

from tunegate.config import GateConfig, TargetConfig
from tunegate.review.rules import GATE, TARGET, section_changes
from tunegate_deploy.evidence.envelope import EvidenceError
from tunegate_deploy.evidence.statement import JudgedCell, LatencyVerdict

_Section = TypeVar("_Section", bound=msgspec.Struct)


class OwnGate(msgspec.Struct, frozen=True, kw_only=True):
    """The rules that this gate measures by. `shapes` are those of the candidate's inputs that the
    model leaves open, None for one of unknown size. Values are drawn, and everything computes in
    float32: no configuration of a deploy gate says otherwise."""

    gate: GateConfig
    targets: tuple[TargetConfig, ...]
    shapes: Mapping[str, tuple[int, ...] | None]


def ordered_keys(asked: Mapping[str, Any]) -> GateConfig:
    """Returns a gate with these keys. Raises ValueError for one that the gate has not or whose
    values are not ordered by strictness: nothing could be laxer."""
    known = {each.encode_name: each.name for each in msgspec.structs.fields(GateConfig)}
    for key in asked:
        if key not in known:
            raise ValueError(f"gate.{key} is no key of the gate")
        if known[key] not in GATE.ordered:
            raise ValueError(f"gate.{key} has no order of strictness")
    return msgspec.convert(asked, GateConfig)


def require_keys(found: LatencyVerdict, asked: Mapping[str, Any]) -> None:
    """Raises EvidenceError for the first of these keys of the gate that was laxer."""
    if not asked:
        return
    theirs, own = _read(found.gate, GateConfig(), "gate"), ordered_keys(asked)
    names = {each.name for each in msgspec.structs.fields(own) if each.encode_name in asked}
    own = msgspec.structs.replace(theirs, **{name: getattr(own, name) for name in names})
    _require_no_laxer(own, theirs, "the policy asks for {}")


def require_as_strict(found: LatencyVerdict, cells: Sequence[JudgedCell], own: OwnGate) -> None:
    """Raises EvidenceError with the first reason why a pass of these cells is no pass of this gate:
    a key that is laxer, another target, or other sizes."""
    passed = [each for each in cells if each.status == "pass"]
    names = {each.target for each in passed}
    if missing := [each.name for each in own.targets if each.name not in names]:
        raise EvidenceError(f"no pass on {', '.join(missing)}, which this gate measures on.")
    theirs = _read(found.gate, own.gate, "gate")
    _require_no_laxer(own.gate, theirs, "is {} here")
    for target in own.targets:
        _require_same_target(found, target)
        problems = [_unlike(each, own.shapes) for each in passed if each.target == target.name]
        if all(problems):
            raise EvidenceError(problems[0])


def _require_no_laxer(own: GateConfig, theirs: GateConfig, wanted: str) -> None:
    for change in section_changes(own, theirs, GATE, "gate"):
        if change.effect == "loosened":
            raise EvidenceError(
                f"judged by a laxer gate: {change.key} was {change.new}, and "
                f"{wanted.format(change.old)}."
            )


def _read(found: Mapping[str, object], own: _Section, where: str) -> _Section:
    """Returns the section that the evidence has, of exactly the keys that are known here."""
    strange = {each.encode_name for each in msgspec.structs.fields(own)} ^ found.keys()
    if strange:
        raise EvidenceError(
            f"made by another version of tunegate: only one of both knows {where}."
            f"{min(strange)}. Gate it again with this one."
        )
    try:
        return msgspec.convert(found, type(own))
    except msgspec.ValidationError as error:
        raise EvidenceError(f"its {where} cannot be read ({error}).") from error


def _require_same_target(found: LatencyVerdict, own: TargetConfig) -> None:
    theirs = _read(found.targets.get(own.name, {}), own, f"targets.{own.name}")
    # Where it ran, what that cost and how long it waited are no part of what was measured.
    theirs = msgspec.structs.replace(
        theirs,
        runner=own.runner,
        usd_per_hour=own.usd_per_hour,
        device_wait_seconds=own.device_wait_seconds,
    )
    for change in section_changes(own, theirs, TARGET, f"targets.{own.name}"):
        if change.effect != "tightened":
            raise EvidenceError(
                f"measured on another target: {change.key} was {change.new}, and is {change.old} "
                "here."
            )


def _unlike(cell: JudgedCell, shapes: Mapping[str, tuple[int, ...] | None]) -> str:
    """Returns how the work of a cell differs from what would be measured here, '' if it does
    not."""
    what = f"{cell.model} on {cell.target}"
    measured = {each.name: each.shape for each in cell.inputs}
    if not measured:
        return f"{what} does not say at which sizes it was measured."
    for name, shape in shapes.items():
        if shape is None:
            return f"the shape of {name} is open here: say it by --shape {name}=1,3,224,224."
        if measured.get(name) != shape:
            was = list(measured[name]) if name in measured else "unknown"
            return f"{what} was measured with {name} as {was}, and it is {list(shape)} here."
    for each in cell.inputs:
        if each.given:
            return f"{what} was measured on given values of {each.name}, which are drawn here."
    if cell.accuracy:
        limits = ", ".join(f"{key} {limit:g}" for key, limit in cell.accuracy.items())
        return f"{what} was judged under an accuracy budget ({limits}), and here is none."
    return ""
