"""Matplotlib, loaded where no file of a checkout can configure it, and not before the first figure.

It reads `matplotlibrc` of the working directory, which may name a module
to import or a program to run. Loading it takes half a second, and a report of a mistake has no
figure.
"""

from __future__ import annotations

import contextlib
from collections.abc import Mapping
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from matplotlib.axes import Axes as Axes  # noqa: PLC0414
    from matplotlib.figure import Figure as Figure  # noqa: PLC0414
    from matplotlib.ticker import MaxNLocator


@cache
def load_matplotlib() -> None:
    with contextlib.chdir("/"):
        import matplotlib.figure  # noqa: F401, PLC0415


def blank_figure(inches: tuple[float, float], style: Mapping[str, object]) -> Figure:
    """An empty figure. The style is that of all figures of the process, from now on."""
    load_matplotlib()
    from matplotlib import figure, rcParams  # noqa: PLC0415

    rcParams.update(style)  # type: ignore[arg-type]  # its keys are one long Literal
    return figure.Figure(figsize=inches, layout="constrained")


def few_ticks(intervals: int) -> MaxNLocator:
    """Ticks at round numbers with so many intervals at most."""
    load_matplotlib()
    from matplotlib.ticker import MaxNLocator  # noqa: PLC0415

    return MaxNLocator(intervals)
