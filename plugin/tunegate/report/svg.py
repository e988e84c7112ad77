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
import html
import io
import re
from typing import TYPE_CHECKING


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


# A matplotlib figure as inline SVG that takes its colours and fonts from the page. Figures are
# drawn with stand-in colours; each becomes a CSS variable, so one drawing serves the light page
# and the dark one. The same figure always gives the same bytes.

INK = "#010203"
MUTED = "#020304"
GRID = "#030405"
SLOWER = "#040506"
FASTER = "#050607"
BASE = "#060708"
HEAD = "#070809"
REFERENCE_COLOUR = "#08090a"
SURFACE = "#090a0b"
VARIABLES = {
    INK: "var(--ink)",
    MUTED: "var(--muted)",
    GRID: "var(--line)",
    SLOWER: "var(--slower)",
    FASTER: "var(--faster)",
    BASE: "var(--base)",
    HEAD: "var(--head)",
    REFERENCE_COLOUR: "var(--reference)",
    SURFACE: "var(--surface)",
}
STYLE = {
    "svg.hashsalt": "tunegate",
    "svg.fonttype": "none",
    "font.size": 10.5,
    "text.color": INK,
    "text.parse_math": False,
    "axes.edgecolor": GRID,
    "axes.labelcolor": MUTED,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.spines.left": False,
    "xtick.color": MUTED,
    "ytick.color": MUTED,
    "xtick.major.size": 0,
    "ytick.major.size": 0,
    "grid.color": GRID,
    "grid.linewidth": 0.6,
    "axes.grid": True,
    "axes.grid.axis": "x",
    "axes.axisbelow": True,
}
NO_METADATA = dict.fromkeys(("Creator", "Date", "Format", "Type"))


def styled_figure(width_inches: float, height_inches: float) -> Figure:
    """An empty figure in the style of ours."""
    return blank_figure((width_inches, height_inches), STYLE)


def svg(figure: Figure, *, name: str, description: str) -> str:
    """The `<svg>` element alone; `name` keeps its ids apart from those of its neighbours."""
    out = io.StringIO()
    figure.savefig(out, format="svg", metadata=NO_METADATA, transparent=True)
    drawing = out.getvalue()
    drawing = drawing[drawing.index("<svg") :]
    drawing = re.sub(r"<metadata>.*?</metadata>", "", drawing, flags=re.DOTALL)
    drawing = re.sub(r'\bid="', f'id="{name}-', drawing)
    drawing = re.sub(r'href="#', f'href="#{name}-', drawing)
    drawing = drawing.replace("url(#", f"url(#{name}-")
    for stand_in, variable in VARIABLES.items():
        drawing = drawing.replace(stand_in, variable)
    return _opened(drawing, description)


def _opened(drawing: str, description: str) -> str:
    """The drawing under an opening tag that scales with the page and can be read aloud."""
    end = drawing.index(">")
    view_box = re.search(r'viewBox="[^"]*"', drawing[:end])
    label = html.escape(description)
    box = view_box.group() if view_box else ""
    return (
        f'<svg {box} role="img" aria-label="{label}" xmlns:xlink="http://www.w3.org/1999/xlink">'
        f"<title>{label}</title>{drawing[end + 1 :]}"
    )
