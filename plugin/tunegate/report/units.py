"""Numbers with their units, as people read them."""

import math
from collections.abc import Sequence

from tunegate.artifacts.inputs import DrawnInput
from tunegate.artifacts.measurements import Interval
from tunegate.wording import NO_NUMBER, milliseconds

NONE = NO_NUMBER


def difference_ms(value: float) -> str:
    """Returns a signed time, without a sign if it rounds to nothing."""
    sign = "+" if value > 0 else "−" if value < 0 else ""
    return f"{sign}{milliseconds(abs(value))}"


def percent(value: float | None) -> str:
    """Returns a signed percentage with one decimal and a real minus sign."""
    if value is None:
        return NONE
    rounded = f"{abs(value):.1f}"
    sign = "" if float(rounded) == 0 else "+" if value > 0 else "−"
    return f"{sign}{rounded}%"


def interval(value: Interval | None) -> str:
    """Returns only the bounds: `+10.9 to +13.9%`."""
    if value is None:
        return NONE
    return f"{percent(value.low).removesuffix('%')} to {percent(value.high)}"


def share(value: float) -> str:
    return f"{value * 100:.0f}%"


def duration(seconds: float | None) -> str:
    if seconds is None:
        return NONE
    if 0 < seconds < 10:  # noqa: PLR2004  # below this a tenth of a second can be seen
        return f"{seconds:.1f} s"
    minutes, rest = divmod(round(seconds), 60)
    hours, minutes = divmod(minutes, 60)
    if hours:
        return f"{hours} h {minutes:02d} min"
    seconds_too = f" {rest:02d} s" if rest else ""
    return f"{minutes} min{seconds_too}" if minutes else f"{rest} s"


def money(usd: float | None) -> str:
    """Returns dollars to the cent, or to a hundredth of one for less."""
    if usd is None:
        return NONE
    if 0 < usd < 0.0001:  # noqa: PLR2004
        return "under 0.0001 USD"
    return f"{usd:.2f} USD" if usd >= 1 or usd == 0 else f"{usd:.4f} USD"


_JOULES = ("µJ", "mJ", "J", "kJ", "MJ")


def energy(joules: float | None) -> str:
    """Returns joules, with the prefix that leaves few digits."""
    if joules is None:
        return NONE
    micro = 1e6 * joules
    steps = min(int(math.log10(micro) // 3), len(_JOULES) - 1) if micro >= 1 else 0
    return f"{micro / 1000**steps:.4g} {_JOULES[steps]}" if joules else "0 J"


def size(count: int) -> str:
    if count < 1000:  # noqa: PLR2004  # decimal units
        return f"{count} B"
    if count < 1_000_000:  # noqa: PLR2004
        return f"{count / 1e3:.0f} kB"
    return f"{count / 1e6:.1f} MB"


# The sizes that a finding refers to.

_SHOWN_SHAPES = 2


def sizes_of(inputs: Sequence[DrawnInput]) -> str:
    """Returns the shapes of a finding's largest inputs, such as `1x3x224x224`, '' without any. No
    names: these are the model's."""
    shapes = [each.shape for each in inputs if each.shape]
    largest = sorted(dict.fromkeys(shapes), key=math.prod, reverse=True)
    sizes = ", ".join("x".join(map(str, shape)) for shape in largest[:_SHOWN_SHAPES])
    return f"{sizes} …" if len(largest) > _SHOWN_SHAPES else sizes
