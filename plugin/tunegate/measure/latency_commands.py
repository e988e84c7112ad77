"""`ports.Benchmarker` for two commands of the user that print latencies."""

import math
import random
import re
import statistics
import time
from collections.abc import Generator, Mapping, Sequence
from pathlib import Path

from tunegate.artifacts.changes import SIDES
from tunegate.artifacts.histogram import Histogram, histogram
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.measurements import Launch, LayersLaunch
from tunegate.errors import ConfigError, MeasurementError
from tunegate.measure.bench_messages import Sides
from tunegate.ports import Bench, Benchmarker, ProbeThresholds, Scorer, Turns
from tunegate.system.processes.user_command import (
    command_error,
    output_of,
    printed_number,
    require_program,
)

_PROBES_OF_BASE = 4
_LIKE_A_NUMBER = re.compile(r"[+-]?(\d|\.\d|(inf|infinity|nan)(?![a-z]))", re.IGNORECASE)
"""The start of a line that is a number, not a word such as `info`."""
_NUMBER = re.compile(r"([0-9]+(\.[0-9]*)?|\.[0-9]+)([eE][+-]?[0-9]+)?")


class Commands:
    """`lines` maps a placeholder for an artifact's directory to its command line. A launch runs
    both commands once, in random order. Each prints latencies in milliseconds, one a line."""

    def __init__(self, lines: Mapping[Path, str], seed: int) -> None:
        self._lines = lines
        self._rng = random.Random(seed)  # noqa: S311 -- nobody can guess the seed
        self._good_lines: set[str] = set()

    def pair(
        self,
        base: Path,
        head: Path,
        *,
        slowdown_percent: float = 0.0,
        compares_outputs: bool = False,
    ) -> Bench:
        if slowdown_percent:
            raise command_error(self._lines[head], "is a command, and cannot be made slower")
        return CommandPair(Sides(self._lines[base], self._lines[head]), self._rng, self._good_lines)

    def single_ms(self, artifact: Path) -> float:
        return statistics.median(latencies_ms(self._lines[artifact]))

    def times(self, artifact: Path, inferences: int) -> Histogram:
        """Returns the latencies of one start, as many as the command prints."""
        return histogram(latencies_ms(self._lines[artifact]))

    def operators_ms(self, artifact: Path) -> Mapping[str, float]:
        """Returns nothing: a command's operators are unknown."""
        return {}

    def layers(self, base: Path, head: Path, *, number: int, turns: Turns) -> LayersLaunch:
        raise MeasurementError("the layers of a command are not known")

    def reference_ms(self, model: ShapedModel, *, threads: int) -> float:
        message = f"{model}: a command has no reference"
        raise MeasurementError(message)


class CommandPair:
    """A pair of commands; those in `good_lines` have printed latencies before. A launch has no
    repeats inside, so its noise shows only between launches."""

    within_spread = start_seconds = pair_seconds = 0.0

    def __init__(self, lines: Sides[str], rng: random.Random, good_lines: set[str]) -> None:
        self._lines, self._rng, self._good_lines = lines, rng, good_lines

    def launch(self, pairs: int) -> Launch:
        """`pairs` is ignored. Raises ConfigError for a command that has printed no latency yet: no
        other machine would help."""
        began = time.monotonic()
        order = list(SIDES)
        self._rng.shuffle(order)
        times = {side: self._times(self._lines.of(side)) for side in order}
        return _launch_of(times["base"], times["head"], began)

    def probes(self, count: int, thresholds: ProbeThresholds) -> Generator[Launch]:
        """Times the base once for every few starts of the head. A command cannot be timed for
        longer, so `thresholds` is ignored."""
        base: list[float] = []
        for number in range(count):
            began = time.monotonic()
            if number % _PROBES_OF_BASE == 0:
                base = latencies_ms(self._lines.base)
            yield _launch_of(base, latencies_ms(self._lines.head), began)

    def _times(self, line: str) -> list[float]:
        try:
            times = latencies_ms(line)
        except MeasurementError as error:
            if line in self._good_lines:
                raise
            message = f"{error}. A command is run as it is, without a shell: correct it."
            raise ConfigError(message) from error
        self._good_lines.add(line)
        return times


def _launch_of(base: Sequence[float], head: Sequence[float], began: float) -> Launch:
    base_ms, head_ms = statistics.median(base), statistics.median(head)
    return Launch(
        effect=math.log(head_ms / base_ms),
        base_ms=base_ms,
        head_ms=head_ms,
        pairs=1,
        seconds=time.monotonic() - began,
        mean_effect=math.log(statistics.fmean(head) / statistics.fmean(base)),
        base_times=histogram(base),
        head_times=histogram(head),
    )


def latencies_ms(line: str) -> list[float]:
    """Returns the latencies that a command line prints, run without a shell. Raises
    MeasurementError."""
    output = output_of(line)
    numbers = [text.strip() for text in output.splitlines() if _LIKE_A_NUMBER.match(text.strip())]
    times = [_latency_ms(text, line) for text in numbers]
    if not times:
        raise command_error(line, "printed no latency: one number of milliseconds in a line")
    return times


def _latency_ms(text: str, line: str) -> float:
    """Returns one latency. Unreadable text is an error: a slow inference must not drop out by its
    spelling."""
    value = float(text) if _NUMBER.fullmatch(text) else math.nan
    if not 0 < value < math.inf:
        what = f"printed no latency, a number of milliseconds above zero, but `{text}`"
        raise command_error(line, what)
    return value


_: type[Benchmarker] = Commands


# `ports.Scorer` over a command of the user.


class ScoringCommand:
    """The command gets an artifact's directory as its last argument and prints
    the score in its last line."""

    def __init__(self, line: str) -> None:
        """Raises ConfigError without its program, before anything is built for it."""
        require_program(line)
        self._line = line

    def score(self, artifact: Path) -> float:
        lines = output_of(self._line, str(artifact)).split()
        score = printed_number(lines[-1]) if lines else None
        if score is None:
            raise command_error(self._line, "printed no number at its end")
        return score


_scoring_command: type[Scorer] = ScoringCommand
