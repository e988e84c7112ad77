"""An across-stack study: its cells, their measurements, and the conclusions."""

from __future__ import annotations

from typing import Literal

import msgspec

from tunegate.artifacts.builds import ErrorEstimate
from tunegate.artifacts.measurements import Interval
from tunegate.artifacts.plans import EnergySource
from tunegate_cache.format.records import DeviceFingerprint

CellSetting = dict[str, str]
"""The level of each axis."""


class Axis(msgspec.Struct, frozen=True, kw_only=True):
    """An axis of a study and its levels; the first level is the reference."""

    name: str
    levels: tuple[str, ...]


class LeftOut(msgspec.Struct, frozen=True, kw_only=True):
    """Cells that are impossible, or would repeat another one: their `count`, and one of them."""

    reason: str
    count: int
    example: CellSetting


class StudyLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a cell beside the reference of its model, in alternating blocks: `effect` is
    ln(cell / reference). `workspace_bytes` is what running added to the loaded build, `joules` the
    energy of one inference by the counters that `energy_source` names, None without any."""

    round: int
    effect: float
    ms: float
    reference_ms: float
    peak_bytes: int = 0
    workspace_bytes: int = 0
    joules: float | None = None
    energy_source: EnergySource | None = None


class StudyCell(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, built and measured. `key` is the digest of the model's bytes and the requested
    settings; a build is reused only under the same `versions` on the same `device`. `reason` says
    why there is no build, or no time; it `may_pass` in another run. `trials` were measured for it;
    `is_cut` if time ran out before all of them. `operations` are multiplications with additions per
    inference, None if they cannot be counted; `layers` have the requested form; `digest` is the
    built artifact's."""

    key: str
    setting: CellSetting
    versions: dict[str, str] = {}
    device: DeviceFingerprint | None = None
    reason: str = ""
    may_pass: bool = False
    size_bytes: int = 0
    error: ErrorEstimate | None = None
    operations: float | None = None
    layers: int = 0
    trials: int = 0
    is_cut: bool = False
    seconds: float = 0.0
    digest: str = ""
    launches: tuple[StudyLaunch, ...] = ()


class KeptCell(msgspec.Struct, frozen=True, kw_only=True):
    """The content of a file of `study/cells`."""

    schema: Literal[1] = 1
    cell: StudyCell


class StudyDesign(msgspec.Struct, frozen=True, kw_only=True):
    """The chosen cells of a study. A `full` factorial has all possible ones. `untold` are the pairs
    of axes whose interaction these cells cannot tell."""

    kind: Literal["full", "fraction"]
    axes: tuple[Axis, ...]
    possible: int
    chosen: int
    left_out: tuple[LeftOut, ...]
    untold: tuple[tuple[str, str], ...] = ()


class MainEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The time at `level` against the time at `against`, in percent, averaged over the `settings`
    of the other axes that have both; 0 settings for a fit of all cells. The interval and `p_value`
    count all effects of the study."""

    axis: str
    level: str
    against: str
    percent: Interval
    p_value: float
    is_clear: bool
    settings: int


class PairEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The interaction of two axes, in percent: the time with both levels against the product of
    their single effects; 0 if they add up."""

    axes: tuple[str, str]
    levels: tuple[str, str]
    against: tuple[str, str]
    percent: Interval
    p_value: float
    is_clear: bool
    settings: int


class RankFlip(msgspec.Struct, frozen=True, kw_only=True):
    """Another level of the `ranked` axes is the best once `axis` has another level, with the same
    `setting` otherwise. Each of the two best ones is faster than the other where it is the best, by
    this many percent."""

    axis: str
    levels: tuple[str, str]
    ranked: tuple[str, ...]
    best: tuple[CellSetting, CellSetting]
    setting: CellSetting
    faster_percent: tuple[float, float]
    p_value: float


class SlowerWithLess(msgspec.Struct, frozen=True, kw_only=True):
    """A model that takes longer than another one with more operations, in the same `setting`."""

    fewer: str
    more: str
    setting: CellSetting
    operations_percent: float
    time_percent: Interval


class FrontCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that no other of its model beats in time, error, size, memory and energy at once.
    Energy counts if it was measured for all cells of the front."""

    setting: CellSetting
    ms: float
    error_percent: float
    size_bytes: int
    memory_bytes: int
    joules: float | None = None
    energy_source: EnergySource | None = None


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `study.json`. `file` is what was studied; cells of an unfinished study have
    fewer launches than `rounds`, `unfinished` of them."""

    schema: Literal[1] = 1
    file: str
    rounds: int
    design: StudyDesign
    cells: tuple[StudyCell, ...]
    commands: tuple[str, ...]
    main_effects: tuple[MainEffect, ...]
    pair_effects: tuple[PairEffect, ...]
    rank_flips: tuple[RankFlip, ...]
    slower_with_less: tuple[SlowerWithLess, ...]
    fronts: tuple[FrontCell, ...]
    unfinished: int = 0
    environment: dict[str, str] = {}
