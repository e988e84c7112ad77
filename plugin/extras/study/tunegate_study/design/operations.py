"""Models with fewer operations that nevertheless take longer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import groupby, permutations

from tunegate_study.design.contrasts import contrast
from tunegate_study.design.measured import MODEL, VARIANT, MeasuredCell, as_key, without
from tunegate_study.studies import SlowerWithLess

_CLEARLY_FEWER = 0.95


def slower_with_less(cells: Sequence[MeasuredCell]) -> tuple[SlowerWithLess, ...]:
    """Returns pairs of models, or variants of one, in the same setting: the one with clearly fewer
    operations is slower, by an interval that counts all pairs."""

    def around(cell: MeasuredCell) -> tuple[tuple[str, str], ...]:
        return as_key(without(cell.setting, (MODEL, VARIANT)))

    counted = sorted((cell for cell in cells if cell.operations), key=around)
    pairs = [
        pair for _, group in groupby(counted, key=around) for pair in _fewer_and_more(list(group))
    ]
    return tuple(_slower(pairs))


def _fewer_and_more(group: Sequence[MeasuredCell]) -> Iterator[tuple[MeasuredCell, MeasuredCell]]:
    for one, other in permutations(group, 2):
        if (one.operations or 0) < _CLEARLY_FEWER * (other.operations or 0):
            yield one, other


def _slower(pairs: Sequence[tuple[MeasuredCell, MeasuredCell]]) -> Iterator[SlowerWithLess]:
    for fewer, more in pairs:
        percent = contrast((1.0, -1.0), (fewer.alone, more.alone)).percent(len(pairs))
        if percent.low > 0:
            share = (fewer.operations or 0) / (more.operations or 1)
            yield SlowerWithLess(
                fewer=_name(fewer),
                more=_name(more),
                setting=without(fewer.setting, (MODEL, VARIANT)),
                operations_percent=100 * (share - 1),
                time_percent=percent,
            )


def _name(cell: MeasuredCell) -> str:
    variant = cell.setting.get(VARIANT, "")
    return cell.setting[MODEL] if variant in ("", "given") else f"{cell.setting[MODEL]} {variant}"
