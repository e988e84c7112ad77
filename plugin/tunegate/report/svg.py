"""Plots as inline SVG. Colours and fonts are the page's, so one drawing serves light and dark
pages. The same plot always gives the same bytes."""

import html
import itertools
import math
from collections.abc import Sequence
from typing import Literal, NamedTuple

INK = "var(--ink)"
MUTED = "var(--muted)"
GRID = "var(--line)"
SLOWER = "var(--slower)"
FASTER = "var(--faster)"
BASE = "var(--base)"
HEAD = "var(--head)"
REFERENCE_COLOUR = "var(--reference)"
SURFACE = "var(--surface)"

_POINTS_AN_INCH = 72
_FONT, _CHARACTER, _LINE = 10.5, 6.4, 13.0
"""The size of texts, the approximate width of a character, and the height of a line, in points."""
_EDGE = 8.0
_STEPS = (1.0, 2.0, 2.5, 5.0, 10.0)
Anchor = Literal["start", "middle", "end"]
Point = tuple[float, float]


class Scale(NamedTuple):
    """The values at the two ends of an axis, left or bottom first."""

    first: float
    last: float
    is_logarithmic: bool = False

    def share(self, value: float) -> float:
        """Returns the position of a value between the ends: 0 is the first, 1 the last."""
        first, last, at = self.first, self.last, value
        if self.is_logarithmic:
            first, last, at = math.log(first), math.log(last), math.log(value)
        return (at - first) / (last - first) if last != first else 0.5


class Tick(NamedTuple):
    """A labelled position on an axis; a label may have two lines."""

    at: float
    label: str


def padded_scale(values: Sequence[float], share: float) -> Scale:
    """Returns a scale of all values, with this share left free at each end."""
    low, high = min(values), max(values)
    room = (high - low) * share or abs(high) * share or 1.0
    return Scale(low - room, high + room)


def few_ticks(scale: Scale, intervals: int) -> tuple[float, ...]:
    """Returns round numbers inside the scale, with at most `intervals` intervals between them."""
    low, high = sorted(scale[:2])
    least = (high - low) / intervals
    power = 10.0 ** math.floor(math.log10(least))
    step = next(each * power for each in _STEPS if each * power >= least * (1 - 1e-9))
    places = range(math.ceil(low / step - 1e-9), math.floor(high / step + 1e-9) + 1)
    return tuple(round(place * step, 12) for place in places)


def numbered_ticks(places: Sequence[float]) -> tuple[Tick, ...]:
    """Returns ticks that are labelled with their own numbers."""
    return tuple(Tick(at, f"{at:g}") for at in places)


class Axis(NamedTuple):
    """A scale with its labelled positions, each with a grid line if there is one."""

    scale: Scale
    ticks: Sequence[Tick] = ()
    title: str = ""
    has_grid: bool = False


class Plot:
    """An area with two axes. Later drawings cover earlier ones. The space at the left is for the
    labels and the title of `y`; a legend is above the area."""

    def __init__(
        self, inches: Point, x: Axis, y: Axis, legend: Sequence[tuple[str, str]] = ()
    ) -> None:
        self._width, self._height = (_POINTS_AN_INCH * inch for inch in inches)
        self._x, self._y = x.scale, y.scale
        self._drawn: list[str] = []
        lines = max((tick.label.count("\n") + 1 for tick in x.ticks), default=0)
        longest = max((len(tick.label) for tick in y.ticks), default=0)
        self._left = _EDGE + longest * _CHARACTER + (_LINE + 3 if y.title else 0)
        self._right = self._width - 1.5 * _EDGE
        self._top = _EDGE + (_LINE if legend else 0)
        self._bottom = self._height - _LINE * (lines + bool(x.title)) - _EDGE
        self._draw_across(x)
        self._draw_up(y)
        self._path([(self._left, self._bottom), (self._right, self._bottom)], GRID, 0.8)
        self._draw_legend(legend)

    def _draw_across(self, axis: Axis) -> None:
        for tick in axis.ticks:
            if axis.has_grid:
                self.vertical(tick.at, GRID, 0.6)
            for line, text in enumerate(tick.label.split("\n"), 1):
                self._text((self._across(tick.at), self._bottom + line * _LINE), text, MUTED)
        self._text(((self._left + self._right) / 2, self._height - 5), axis.title, MUTED)

    def _draw_up(self, axis: Axis) -> None:
        for tick in axis.ticks:
            if axis.has_grid:
                self.horizontal(tick.at, GRID, 0.6)
            self._text((self._left - 5, self._up(tick.at) + 3.5), tick.label, MUTED, "end")
        middle = (self._top + self._bottom) / 2
        turned = f' transform="rotate(-90 {_LINE:.1f} {middle:.1f})"'
        self._text((_LINE, middle), axis.title, MUTED, more=turned)

    def _draw_legend(self, entries: Sequence[tuple[str, str]]) -> None:
        at = self._left
        for label, colour in entries:
            self._drawn.append(
                f'<rect x="{at:.1f}" y="{_EDGE - 4:.1f}" width="12" height="6" fill="{colour}"/>'
            )
            self._text((at + 16, _EDGE + 3), label, anchor="start")
            at += 30 + len(label) * _CHARACTER

    def line(
        self, points: Sequence[Point], colour: str, width: float = 1.2, dash: str = ""
    ) -> None:
        """Draws straight lines from point to point."""
        self._path([(self._across(x), self._up(y)) for x, y in points], colour, width, dash)

    def steps(self, points: Sequence[Point], colour: str, width: float, dash: str = "") -> None:
        """Draws each value up to the position of the next."""
        pairs = itertools.pairwise(points)
        corners = [corner for a, b in pairs for corner in (a, (b[0], a[1]))]
        self.line([*corners, *points[-1:]], colour, width, dash)

    def vertical(self, x: float, colour: str, width: float, dash: str = "") -> None:
        """Draws a line over the whole height."""
        at = self._across(x)
        self._path([(at, self._top), (at, self._bottom)], colour, width, dash)

    def horizontal(self, y: float, colour: str, width: float) -> None:
        """Draws a line over the whole width."""
        at = self._up(y)
        self._path([(self._left, at), (self._right, at)], colour, width)

    def box(self, low: Point, high: Point, colour: str, opacity: float = 1.0) -> None:
        """Draws a filled rectangle between two opposite corners."""
        left, right = sorted((self._across(low[0]), self._across(high[0])))
        top, bottom = sorted((self._up(low[1]), self._up(high[1])))
        self._drawn.append(
            f'<rect x="{left:.1f}" y="{top:.1f}" width="{right - left:.1f}" '
            f'height="{bottom - top:.1f}" fill="{colour}" fill-opacity="{opacity:g}"/>'
        )

    def dot(self, at: Point, colour: str, radius: float, edge: str = "none") -> None:
        """Draws a filled circle."""
        x, y = self._across(at[0]), self._up(at[1])
        self._drawn.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="{radius:g}" fill="{colour}" stroke="{edge}"/>'
        )

    def diamond(self, at: Point, colour: str, radius: float) -> None:
        """Draws a square that stands on a corner."""
        x, y = self._across(at[0]), self._up(at[1])
        corners = ((x, y - radius), (x + radius, y), (x, y + radius), (x - radius, y))
        shape = " ".join(f"{a:.1f},{b:.1f}" for a, b in corners)
        self._drawn.append(f'<polygon points="{shape}" fill="{colour}"/>')

    def text(
        self,
        at: Point,
        text: str,
        *,
        anchor: Anchor = "middle",
        shift: Point = (0.0, 0.0),
        colour: str = INK,
        is_bold: bool = False,
    ) -> None:
        """Writes a text at a point, shifted by these points to the right and up."""
        x, y = self._across(at[0]) + shift[0], self._up(at[1]) - shift[1] + 3.5
        half = len(text) * _CHARACTER / 2
        # A text never leaves the drawing.
        if anchor == "middle":
            x = min(max(x, half + 2), self._width - half - 2)
        elif anchor == "start" and x + 2 * half > self._width:
            anchor, x = "end", x - 2 * shift[0]
        self._text((x, y), text, colour, anchor, ' font-weight="bold"' if is_bold else "")

    def edge_text(self, side: Literal["left", "right"], y: float, text: str) -> None:
        """Writes a text at one side of the area, at a height."""
        height = self._up(y) - 2
        if side == "left":
            self._text((self._left, height), text, anchor="start")
        else:
            self._text((self._right, height), text, anchor="end")

    def svg(self, description: str) -> str:
        """Returns the `<svg>` element, which scales with the page and can be read aloud."""
        label = html.escape(description)
        return (
            f'<svg viewBox="0 0 {self._width:.0f} {self._height:.0f}" role="img" '
            f'aria-label="{label}" font-size="{_FONT}"><title>{label}</title>'
            f"{''.join(self._drawn)}</svg>"
        )

    def _across(self, x: float) -> float:
        return self._left + self._x.share(x) * (self._right - self._left)

    def _up(self, y: float) -> float:
        return self._bottom - self._y.share(y) * (self._bottom - self._top)

    def _path(self, points: Sequence[Point], colour: str, width: float, dash: str = "") -> None:
        points_text = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        dashed = f' stroke-dasharray="{dash}"' if dash else ""
        self._drawn.append(
            f'<polyline points="{points_text}" fill="none" stroke="{colour}" '
            f'stroke-width="{width:g}"{dashed}/>'
        )

    def _text(
        self, at: Point, text: str, colour: str = INK, anchor: Anchor = "middle", more: str = ""
    ) -> None:
        if text:
            self._drawn.append(
                f'<text x="{at[0]:.1f}" y="{at[1]:.1f}" text-anchor="{anchor}" fill="{colour}"'
                f"{more}>{html.escape(text)}</text>"
            )
