"""Energy of the processors: RAPL, as Linux shows it under /sys/class/powercap.

Every package counts, and the memory (`dram`) beside it, which is no part of a package. `core` and
`uncore` are parts of one, `psys` is the platform with the packages in it, and `intel-rapl-mmio`
shows the same packages a second time: none of these is added. AMD's counters have the same names.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

POWERCAP = Path("/sys/class/powercap")
_ZONE = re.compile(r"intel-rapl:\d+(?::\d+)?")
_ADDED = re.compile(r"package-\d+(?:-die-\d+)?|dram")
_MICRO = 1e-6


class Rapl:
    """The packages of this machine as one counter, which has to be read more often than the
    shortest of theirs wraps around: a minute at hundreds of watts."""

    def __init__(self, powercap: Path = POWERCAP) -> None:
        self._zones = tuple(_zones(powercap))
        self._last = self._read()
        self._microjoules = 0

    def joules(self) -> float | None:
        """The sum since the beginning; None without a package, or where one may not be read."""
        now = self._read()
        if now is None or self._last is None:
            self._last = None
            return None
        for zone, value in now.items():
            self._microjoules += _advance(self._last[zone], value, zone)
        self._last = now
        return self._microjoules * _MICRO

    def _read(self) -> dict[Path, int] | None:
        values = {zone: _number(zone / "energy_uj") for zone in self._zones}
        known = {zone: value for zone, value in values.items() if value is not None}
        return known if known and len(known) == len(values) else None


def _zones(powercap: Path) -> Iterator[Path]:
    try:
        found = sorted(powercap.iterdir())
    except OSError:
        return
    for zone in found:
        if _ZONE.fullmatch(zone.name) and _ADDED.fullmatch(_text(zone / "name")):
            yield zone


def _advance(before: int, after: int, zone: Path) -> int:
    """The difference; a counter that fell has begun again at 0 after its largest value."""
    if after >= before:
        return after - before
    largest = _number(zone / "max_energy_range_uj")
    return after if largest is None or largest < before else largest - before + after


def _number(path: Path) -> int | None:
    text = _text(path)
    return int(text) if text.isascii() and text.isdigit() else None


def _text(path: Path) -> str:
    """The text, or '' where it may not be read: the kernel lets only root read the counters."""
    try:
        return path.read_text(errors="replace").strip()
    except OSError:
        return ""
