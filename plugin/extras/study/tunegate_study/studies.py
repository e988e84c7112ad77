"""An across-stack study: its cells, what was measured of them, and what that says."""

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
    """Cells that cannot be, or would repeat another one: their `count`, and one of them."""

    reason: str
    count: int
    example: CellSetting


class StudyLaunch(msgspec.Struct, frozen=True, kw_only=True):
    """One launch of a cell beside the reference of its model, in alternating blocks: `effect` is
    ln(cell / reference). `workspace_bytes` are what running added to the loaded build, `joules`
    what one inference used by the counters that `energy_source` names, None where there are
    none."""

    round: int
    effect: float
    ms: float
    reference_ms: float
    peak_bytes: int = 0
    workspace_bytes: int = 0
    joules: float | None = None
    energy_source: EnergySource | None = None


class StudyCell(msgspec.Struct, frozen=True, kw_only=True):
    """One setting, built and measured. `key` is the digest of the model's bytes and all that was
    asked of it; what was built counts again only under the same `versions` on the same `device`.
    `reason` says why there is no build, or no time; it `may_pass` in another run. `trials` were
    measured for it; `is_cut` where time was over before all of them. `operations` are
    multiplications with additions of one inference, None where they cannot be counted; `layers` are
    those that have the form which the cell asks for; `digest` is that of the built artifact."""

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
    """The cells of a study that were chosen. A `full` factorial has all that are possible. `untold`
    are the pairs of axes whose interaction these cells cannot tell."""

    kind: Literal["full", "fraction"]
    axes: tuple[Axis, ...]
    possible: int
    chosen: int
    left_out: tuple[LeftOut, ...]
    untold: tuple[tuple[str, str], ...] = ()


class MainEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The time at `level` against the time at `against`, in percent, on average over so many
    `settings` of the other axes that have both; 0 settings where a fit of all cells tells it. The
    interval and `p_value` count all effects of the study."""

    axis: str
    level: str
    against: str
    percent: Interval
    p_value: float
    is_clear: bool
    settings: int


class PairEffect(msgspec.Struct, frozen=True, kw_only=True):
    """The interaction of two axes, in percent: the time with both levels against the product of
    their single effects; 0 where they add up."""

    axes: tuple[str, str]
    levels: tuple[str, str]
    against: tuple[str, str]
    percent: Interval
    p_value: float
    is_clear: bool
    settings: int


class RankFlip(msgspec.Struct, frozen=True, kw_only=True):
    """Another level of `ranked` axes is the best once `axis` has another level, with all else (the
    `setting`) the same. Each of the two best ones is faster than the other, where it is the best,
    by so many percent."""

    axis: str
    levels: tuple[str, str]
    ranked: tuple[str, ...]
    best: tuple[CellSetting, CellSetting]
    setting: CellSetting
    faster_percent: tuple[float, float]
    p_value: float


class SlowerWithLess(msgspec.Struct, frozen=True, kw_only=True):
    """A model that takes longer than another one of more operations, in the same `setting`."""

    fewer: str
    more: str
    setting: CellSetting
    operations_percent: float
    time_percent: Interval


class FrontCell(msgspec.Struct, frozen=True, kw_only=True):
    """A cell that no other of its model beats in time, error, size, memory and energy at once.
    Energy counts where it was counted for all cells of the front."""

    setting: CellSetting
    ms: float
    error_percent: float
    size_bytes: int
    memory_bytes: int
    joules: float | None = None
    energy_source: EnergySource | None = None


class Study(msgspec.Struct, frozen=True, kw_only=True):
    """The content of `study.json`. `file` is what was studied; a cell has fewer launches than
    `rounds` where the study is not finished, which `unfinished` cells are."""

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
