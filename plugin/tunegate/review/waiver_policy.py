"""The waivers that count: those of the base, as far as the head still wants them."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Sequence

import msgspec

from tunegate.artifacts.builds import Cell
from tunegate.artifacts.changes import ModelPath, PolicyChange, path_of, without_upgrade
from tunegate.artifacts.verdicts import Waiver, waiver_of
from tunegate.config import Config
from tunegate.review.model_settings import targets_for
from tunegate.wording import did_you_mean


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


# Waivers that can waive nothing, because no configured model or target has their name.


def stray_waivers(
    waivers: Iterable[Waiver], config: Config, models: Iterable[ModelPath]
) -> Iterator[str]:
    """Yields a line for each waiver that is about none of the models, or about no target of its
    model. A model's path stands for all of its profiles."""
    names = {without_upgrade(name) for name in models}
    known = names | {path_of(name) for name in names}
    for cell in dict.fromkeys(waiver.cell for waiver in waivers):
        problem = _problem(cell, config, known)
        if problem:
            yield f"the waiver of {cell.model} on {cell.target} waives nothing: {problem}"


def _problem(cell: Cell, config: Config, known: Collection[ModelPath]) -> str:
    model = without_upgrade(cell.model)
    if model not in known:
        return f"no configured model has this name.{_nearest(model, known)}"
    targets = targets_for(config, path_of(model))
    if targets and cell.target not in targets:
        return f"the model has no target {cell.target}.{_nearest(cell.target, targets)}"
    return ""


def _nearest(word: str, known: Collection[str]) -> str:
    names = sorted(known)
    listed = f"Known: {', '.join(names[:5])}."
    return f" {did_you_mean(word, names, listed)}"
