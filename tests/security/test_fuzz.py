"""The fuzzer of the cache, for a few seconds."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]


def test_twenty_thousand_mutants_are_taken_or_refused_and_none_does_harm() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "benchmarks.cache.fuzz_cache", "--cases", "20000", "--seed", "1"],
        check=False,
        cwd=ROOT,
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    rows = re.findall(r"^\| (\w+) \| [\d,]+ \| ([\d,]+) \| ([\d,]+) \|", done.stdout, re.MULTILINE)
    assert [kind for kind, _, _ in rows] == [
        "line",
        "text",
        "values",
        "segment",
        "name",
        "decisions",
    ]
    for _, accepted, refused in rows:  # a fuzzer whose cases all end the same way finds nothing
        assert int(accepted.replace(",", "")) > 50
        assert int(refused.replace(",", "")) > 50
