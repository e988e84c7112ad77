"""Builds of one model, timed in turn in this process."""

from __future__ import annotations

import statistics
import time
from collections.abc import Sequence
from pathlib import Path

from tunegate.compiler.loader import TvmArtifact
from tunegate.models.seeded_inputs import seeded_inputs
from tunegate.system.output.artifact_file import ArtifactFile


def medians_in_turn(builds: Sequence[Path], rounds: int) -> list[float]:
    """Median milliseconds of each build."""
    artifacts = [ArtifactFile.read(build) for build in builds]
    runs = [TvmArtifact(b, a).run for b, a in zip(builds, artifacts, strict=True)]
    feeds = seeded_inputs(artifacts[0].inputs, 1)
    times: list[list[float]] = [[] for _ in runs]
    for _ in range(rounds + 1):
        for run, its in zip(runs, times, strict=True):
            started = time.perf_counter()
            run(feeds)
            its.append((time.perf_counter() - started) * 1e3)
    return [statistics.median(its[1:]) for its in times]
