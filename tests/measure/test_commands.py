"""Real commands: small Python programs that print numbers."""

from __future__ import annotations

import math
import sys
from pathlib import Path

import pytest

from tunegate.errors import MeasurementError
from tunegate.measure.latency_commands import Commands, latencies_ms


def program(text: str) -> str:
    return f'{sys.executable} -c "{text}"'


def test_the_numbers_of_the_output_are_milliseconds_and_words_are_not() -> None:
    line = program("print('warm-up done'); print(1.5); print(' 2.5 '); print('1e-3')")
    assert latencies_ms(line) == [1.5, 2.5, 0.001]


@pytest.mark.parametrize("odd", ["inf", "-1", "0", "nan", "1.2 s", "10,5", "1_0", "20e309", "５"])
def test_a_number_that_is_no_latency_does_not_drop_out(odd: str) -> None:
    with pytest.raises(MeasurementError, match="which is no latency"):
        latencies_ms(program(f"print(1.5); print('{odd}')"))


def test_a_command_that_prints_nothing_has_no_latency() -> None:
    with pytest.raises(MeasurementError, match="printed no latency"):
        latencies_ms(program("print('fast')"))


def test_a_launch_runs_both_and_compares_their_medians(tmp_path: Path) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    lines = {base: program("print(10); print(11); print(12)"), head: program("print(22)")}
    launch = Commands(lines, 1).pair(base, head).launch(12)
    assert (launch.base_ms, launch.head_ms) == (11.0, 22.0)
    assert launch.effect == pytest.approx(math.log(2))
