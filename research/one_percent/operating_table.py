"""Power of rules at 60 seconds of recorded launches, for slowdowns of 0 to 2% of a model.

    python -m research.one_percent.operating_table [--data FILE.npz]

Each draw is a run of consecutive launches of one artifact against itself, as many as fit into the
time. The order inside a launch was drawn, so the sign of its effect may be drawn again: that makes
the truth exactly 0. A slowdown is added to the effects. Every rule has 1% of false alarms by its
own account; the column for 0% says what it has. In the last column a seventh of the launches is 7%
slower: +1% on average, as a code alignment or a memory layout does it.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

import msgspec
import numpy as np
import numpy.typing as npt

from research.gate_rules.recorded import RecordedSeries
from research.gate_rules.recorded_launches import read_launches
from tunegate.decide.distributions import normal_probability, t_quantile
from tunegate.decide.guards import noise_limit

DATA = Path(__file__).parents[2] / "benchmarks" / "data" / "launches.npz"
SECONDS = 60.0
SLOWDOWNS = (0.0, 0.005, 0.01, 0.02)
FALSE_ALARMS = 0.01
_DRAWS = 4000
_TRIM = 0.2
_FEWEST = 4
_RARE_SHARE, _RARE_SLOWDOWN = 1 / 7, 0.07
_SMALLEST_MARGIN = 0.005
"""The margin that says which launches are disturbed, where a rule of ours has none."""

Floats = npt.NDArray[np.float64]
Rule = Callable[[Floats, Floats, float], npt.NDArray[np.bool_]]
"""Effects and their noises as [draw, launch], and the allowed false alarms, to alarms by draw."""


def mean_of_launches(effects: Floats, noises: Floats, error: float) -> npt.NDArray[np.bool_]:
    """The bound of the gate, with a margin of 0 and a single analysis: the mean of launches that
    were not disturbed, by Student's t."""
    limits = np.array([noise_limit(list(each), np.log1p(_SMALLEST_MARGIN)) for each in noises])
    kept = noises <= limits[:, None]
    counts = kept.sum(axis=1)
    means = np.where(kept, effects, 0.0).sum(axis=1) / counts
    squares = np.where(kept, (effects - means[:, None]) ** 2, 0.0).sum(axis=1)
    errors = np.sqrt(squares / np.maximum(counts - 1, 1) / counts)
    quantiles = _quantiles(counts - 1, error)
    alarms: npt.NDArray[np.bool_] = means > quantiles * errors
    return alarms


def trimmed_mean(effects: Floats, noises: Floats, error: float) -> npt.NDArray[np.bool_]:
    """Yuen's t (Biometrika 61, 1974): a fifth of the launches of each end does not count."""
    del noises
    count = effects.shape[1]
    cut = int(_TRIM * count)
    ordered = np.sort(effects, axis=1)
    inner = ordered[:, cut : count - cut]
    winsorized = np.clip(ordered, ordered[:, [cut]], ordered[:, [count - cut - 1]])
    left = inner.shape[1]
    squares = ((winsorized - winsorized.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    errors = np.sqrt(squares / (left * (left - 1)))
    quantiles = _quantiles(np.full(len(effects), left - 1), error)
    alarms: npt.NDArray[np.bool_] = inner.mean(axis=1) > quantiles * errors
    return alarms


def signed_ranks(effects: Floats, noises: Floats, error: float) -> npt.NDArray[np.bool_]:
    """Wilcoxon's signed ranks, by their normal approximation."""
    del noises
    count = effects.shape[1]
    ranks = np.argsort(np.argsort(np.abs(effects), axis=1), axis=1) + 1.0
    statistic = np.where(effects > 0, ranks, 0.0).sum(axis=1)
    mean, spread = count * (count + 1) / 4, np.sqrt(count * (count + 1) * (2 * count + 1) / 24)
    chances = [1 - normal_probability((each - 0.5 - mean) / spread) for each in statistic]
    return np.asarray(chances) < error


class Row(msgspec.Struct, frozen=True, kw_only=True):
    """A rule, and how it sees a slowdown of the model: as one of `share` of the model's time, that
    is looked for in `operators` of them. Of so many `commits`, each slower by that, either all
    launches count together, or only the last is measured, directly against the first."""

    name: str
    rule: Rule
    share: float = 1.0
    operators: int = 1
    commits: int = 1
    is_direct: bool = False


ROWS = (
    Row(name="the gate's bound, margin 0", rule=mean_of_launches),
    Row(name="trimmed mean of launches", rule=trimmed_mean),
    Row(name="signed ranks of launches", rule=signed_ranks),
    Row(name="the operator that differs, half of the time", rule=mean_of_launches, share=0.5),
    Row(name="the operator that differs, a fifth of the time", rule=mean_of_launches, share=0.2),
    Row(name="the same, one of ten", rule=mean_of_launches, share=0.2, operators=10),
    Row(name="the operator that differs, a twentieth", rule=mean_of_launches, share=0.05),
    Row(name="five such commits, their launches together", rule=mean_of_launches, commits=5),
    Row(
        name="five such commits, the last against the first",
        rule=mean_of_launches,
        commits=5,
        is_direct=True,
    ),
)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=DATA)
    series = [each for each in read_launches(parser.parse_args().data) if _count(each) > _FEWEST]
    for line in lines(series):
        print(line, flush=True)  # noqa: T201 - the table is the result


def lines(series: Sequence[RecordedSeries]) -> Iterator[str]:
    """Yields a table for all series together, then the first rows of each."""
    titles = " | ".join(f"+{100 * each:g}%" for each in SLOWDOWNS)
    yield f"| rule | {titles} | a seventh +7% |\n|---|{'--:|' * (len(SLOWDOWNS) + 1)}"
    for row in ROWS:
        shares = np.mean([powers(each, row) for each in series], axis=0)
        yield _line(row.name, shares)
    pairs = [np.mean([pair_alarms(each, slowdown) for each in series]) for slowdown in SLOWDOWNS]
    yield _line("twelve pairs of one launch", [float(each) for each in pairs])
    for each in series:
        yield f"\n{each.name}: {_count(each)} launches in {SECONDS:.0f} s"
        for row in ROWS[:3]:
            yield _line(row.name, powers(each, row))


def _line(name: str, shares: Sequence[float]) -> str:
    return f"| {name} | " + " | ".join(f"{100 * share:.1f}%" for share in shares) + " |"


def powers(series: RecordedSeries, row: Row) -> list[float]:
    """The share of draws with an alarm, for each of SLOWDOWNS, and for rare slow launches."""
    rng = np.random.default_rng(1)
    effects, noises = _draws(series, rng, commits=1 if row.is_direct else row.commits)
    seen = row.commits / row.share if row.is_direct else 1 / row.share
    error = FALSE_ALARMS / row.operators
    slower = [np.log1p(slowdown * seen) for slowdown in SLOWDOWNS]
    rare = np.where(rng.random(effects.shape) < _RARE_SHARE, np.log1p(_RARE_SLOWDOWN * seen), 0.0)
    return [float(row.rule(effects + each, noises, error).mean()) for each in (*slower, rare)]


def pair_alarms(series: RecordedSeries, slowdown: float) -> float:
    """The share of launches whose twelve pairs alone, taken for independent, show a slowdown: what
    measuring longer inside one pair of processes leads to."""
    medians = np.median(series.times_ms, axis=3)
    pairs = np.log(medians[:, :, 1]) - np.log(medians[:, :, 0]) + np.log1p(slowdown)
    errors = pairs.std(axis=1, ddof=1) / np.sqrt(pairs.shape[1])
    quantile = t_quantile(pairs.shape[1] - 1, 1 - FALSE_ALARMS)
    return float((pairs.mean(axis=1) > quantile * errors).mean())


def _draws(
    series: RecordedSeries, rng: np.random.Generator, *, commits: int
) -> tuple[Floats, Floats]:
    """Effects with drawn signs and noises, [draw, launch]: consecutive launches for each commit."""
    first = rng.integers(len(series), size=(_DRAWS, commits, 1))
    at = ((first + np.arange(_count(series))) % len(series)).reshape(_DRAWS, -1)
    signs = rng.choice([-1.0, 1.0], size=at.shape)
    return series.effects[at] * signs, series.noises[at]


def _count(series: RecordedSeries) -> int:
    return min(len(series), int(SECONDS / series.seconds_per_launch))


def _quantiles(freedoms: npt.NDArray[np.int_], error: float) -> Floats:
    known = {int(each): t_quantile(max(int(each), 1), 1 - error) for each in np.unique(freedoms)}
    return np.array([known[int(each)] for each in freedoms])


if __name__ == "__main__":
    main()
