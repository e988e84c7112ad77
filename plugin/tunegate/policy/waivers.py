"""The waivers that count: those of the base, as far as the head still wants them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.waivers import Waiver, waiver_of


class Waivers(msgspec.Struct, frozen=True, kw_only=True):
    """`counting` are those that this verdict knows. `pending` are those of the head that it does
    not: they count once they are merged. Those of `signed` are in the message of a commit, all
    others in the file. `notes` say which file or waiver waives nothing, and why. It `has_unread`
    waivers where a file has a mistake."""

    counting: tuple[Waiver, ...] = ()
    pending: tuple[Waiver, ...] = ()
    signed: tuple[Waiver, ...] = ()
    changes: tuple[PolicyChange, ...] = ()
    notes: tuple[str, ...] = ()
    has_unread: bool = False


NO_WAIVERS = Waivers()


def merged_waivers(base: Sequence[Waiver], head: Sequence[Waiver], file: str) -> Waivers:
    """`file` is what the two versions are called. A waiver that the head removes, lowers or
    shortens counts as the head has it. A profile without a waiver of its own has that of its model
    in either version, so none that is removed leaves a wider one in its place."""
    cells = dict.fromkeys(waiver.cell for waiver in (*base, *head))
    before = {cell: waiver_of(base, cell) for cell in cells}
    after = {cell: waiver_of(head, cell) for cell in cells}
    return Waivers(
        counting=tuple(
            _narrower(cell, old, new)
            for cell in cells
            if (old := before[cell]) is not None and (new := after[cell]) is not None
        ),
        pending=tuple(
            msgspec.structs.replace(new, model=cell.model)
            for cell, new in after.items()
            if new is not None and _is_wider(new, before[cell])
        ),
        changes=tuple(_changes(before, after, file)),
    )


def _narrower(cell: Cell, old: Waiver, new: Waiver) -> Waiver:
    return msgspec.structs.replace(
        old,
        model=cell.model,
        ceiling_percent=min(old.ceiling_percent, new.ceiling_percent),
        expires=min(old.expires, new.expires),
    )


def _is_wider(new: Waiver, old: Waiver | None) -> bool:
    return old is None or new.ceiling_percent > old.ceiling_percent or new.expires > old.expires


def _changes(
    before: dict[Cell, Waiver | None], after: dict[Cell, Waiver | None], file: str
) -> Iterator[PolicyChange]:
    for cell, old in before.items():
        new = after[cell]
        if _terms(old) != _terms(new):
            is_wider = new is not None and _is_wider(new, old)
            yield PolicyChange(
                key=file,
                old=_terms(old),
                new=_terms(new),
                effect="loosened" if is_wider else "tightened",
                counts="once merged" if is_wider else "now",
                model=cell.model,
                target=cell.target,
            )


def _terms(waiver: Waiver | None) -> str:
    if waiver is None:
        return "no waiver"
    return f"up to +{waiver.ceiling_percent:g}% until {waiver.expires}"
