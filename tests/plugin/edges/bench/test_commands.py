"""Real commands: small Python programs that print numbers."""

from __future__ import annotations

import math
import sys
import time
from pathlib import Path

import psutil
import pytest

from tunegate.edges.bench import command_output
from tunegate.edges.bench.commands import Commands, latencies_ms
from tunegate.errors import MeasurementError


def program(text: str) -> str:
    return f'{sys.executable} -c "{text}"'


def test_the_numbers_of_the_output_are_milliseconds_and_words_are_not() -> None:
    line = program("print('warm-up done'); print(1.5); print(' 2.5 '); print('1e-3')")
    assert latencies_ms(line) == [1.5, 2.5, 0.001]


@pytest.mark.parametrize("odd", ["inf", "-1", "0", "nan", "1.2 s", "10,5", "1_0", "20e309", "５"])
def test_a_number_that_is_no_latency_does_not_drop_out(odd: str) -> None:
    with pytest.raises(MeasurementError, match="which is no latency"):
        latencies_ms(program(f"print(1.5); print('{odd}')"))


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (program("print('fast')"), "printed no latency"),
        (program("raise SystemExit('no device')"), "exited with 1: no device"),
        ("no-such-program --fast", "cannot be run"),
        ('unbalanced "quote', "cannot be run"),
    ],
)
def test_a_command_that_measures_nothing_says_why(line: str, said: str) -> None:
    with pytest.raises(MeasurementError) as caught:
        latencies_ms(line)
    assert said in str(caught.value)


def test_a_command_that_hangs_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_output, "_LIMIT_SECONDS", 0.2)
    with pytest.raises(MeasurementError, match="did not end"):
        latencies_ms(program("import time; time.sleep(60)"))


def test_a_command_that_prints_without_end_is_ended(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(command_output, "_MAX_BYTES", 1 << 20)
    with pytest.raises(MeasurementError, match="printed more than 1 MiB"):
        latencies_ms("yes")


def test_what_a_command_leaves_running_is_not_waited_for_and_ended(tmp_path: Path) -> None:
    left = tmp_path / "left"
    start = (
        "import subprocess; p = subprocess.Popen(['sleep', '600']); "
        f"open('{left}', 'w').write(str(p.pid))"
    )
    assert latencies_ms(program(f"{start}; print(1)")) == [1.0]
    deadline = time.monotonic() + 10
    while is_alive(int(left.read_text())) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert not is_alive(int(left.read_text()))


def is_alive(pid: int) -> bool:
    """A process that has ended, and that nobody has asked how, is none."""
    try:
        return bool(psutil.Process(pid).status() != psutil.STATUS_ZOMBIE)
    except psutil.NoSuchProcess:
        return False


def test_a_launch_runs_both_and_compares_their_medians(tmp_path: Path) -> None:
    base, head = tmp_path / "base", tmp_path / "head"
    lines = {base: program("print(10); print(11); print(12)"), head: program("print(22)")}
    launch = Commands(lines, 1).pair(base, head).launch(12)
    assert (launch.base_ms, launch.head_ms) == (11.0, 22.0)
    assert launch.effect == pytest.approx(math.log(2))


def test_nothing_is_a_shell(tmp_path: Path) -> None:
    marker = tmp_path / "marker"
    with pytest.raises(MeasurementError):
        latencies_ms(f"echo 1x; touch {marker}")
    assert not marker.exists()
