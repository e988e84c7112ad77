from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from research.gate_rules import bench_rules
from research.gate_rules.recorded_launches import write_launches
from research.tests.gate_rules.launch_series import make_times


def test_the_tables_of_a_recording_are_printed(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    times = (make_times(130, spread=0.002) * 1e6).astype(np.uint32)
    write_launches(tmp_path / "l.npz", {"idle": (times, 2.0), "busy": (times, 2.0)})
    assert bench_rules.main(["--data", str(tmp_path / "l.npz")]) == 0
    said = capsys.readouterr().out
    assert said.startswith("### All series\n\n260 launches of 2 series.")
    assert "### idle\n\n130 launches, 2.0 s each" in said
    ours = next(line for line in said.splitlines() if "tunegate, margin 3%" in line)
    assert ours.replace("\u00a0", " ").endswith("| 0.0% | 0.0% | 0.0% | 0.0% | 100.0% | 100.0% |")
    assert "| rule | +0% |" in said


def test_a_missing_file_is_one_clear_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert bench_rules.main(["--data", "nothing.npz"]) == 2
    assert "nothing.npz: not a file of recorded launches" in capsys.readouterr().err
