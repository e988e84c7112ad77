"""Times the page of a long history: writing it, and drawing it in a browser without a network.

python -m benchmarks.processes.history_page [--entries 100000] [--runs 5]
"""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Iterator
from pathlib import Path
from types import MappingProxyType

from selenium import webdriver
from tests.support.browser import browser, show

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.history import HistoryEntry, ModelCost
from tunegate.artifacts.measurements import Interval
from tunegate_history import costs_page
from tunegate_history import history_page as page

START, HOUR = 1_700_000_000, 3600
SHAPES = MappingProxyType({"one series": (1, 1, 1), "50 models, 2 targets, 3 devices": (50, 2, 3)})
DRAWN = """
const drawn = performance.getEntriesByName("drawn");
return drawn.length ? drawn[0].startTime : 0;
"""


def main() -> None:
    given = command_line(__doc__, entries=100_000, runs=5)
    heading(
        f"{given.entries:,} entries | page | written in | drawn after | then a filter | costs page",
        words=(0,),
    )
    with scratch_folder() as folder, browser(folder / "profile") as chrome:
        for name, shape in SHAPES.items():
            entries = tuple(history(given.entries, *shape))
            path = folder / "history.html"
            begun = time.perf_counter()
            path.write_text(page.render(entries, "s3://bucket/prefix"), encoding="utf-8")
            written = time.perf_counter() - begun
            begun = time.perf_counter()
            costs_page.render(entries, "s3://bucket/prefix")
            costs = time.perf_counter() - begun
            found = [seconds_to_open(chrome, path) for _ in range(given.runs + 1)][1:]
            drawn, filtered = (statistics.median(each) for each in zip(*found, strict=True))
            seconds = (f"{each:.2f} s" for each in (written, drawn, filtered, costs))
            row(name, f"{path.stat().st_size / 1e6:.1f} MB", *seconds)


def history(count: int, models: int, targets: int, devices: int) -> Iterator[HistoryEntry]:
    """Entries as runs would leave them, one an hour, with names and reasons of a usual length."""
    chance = random.Random(1)
    for at in range(count):
        head = 8.0 + at % models + chance.gauss(0, 0.05)
        yield HistoryEntry(
            at=START + at * HOUR // 10,
            commit=f"{at // 4:040x}",
            release=f"v1.{at // 5000}" if at % 5000 == 0 else "",
            model=f"models/family_{at % models % 7}/net_{at % models:02d}.onnx",
            target=f"target{at // models % targets}",
            device=f"device number {at // models // targets % devices}",
            runtime="tvm",
            status="fail" if chance.random() < 0.01 else "pass",
            base_ms=8.0 + at % models,
            head_ms=head,
            change_percent=Interval(low=-0.4, center=0.1, high=0.5),
            repository=f"acme/repository{at % 5}",
            change=at // 8,
            authored=START + at * HOUR // 10 - 900,
            run_url=f"https://ci.example/acme/models/actions/runs/{10**9 + at // 4}",
            reason="within the margin of 3%",
            versions={"apache-tvm": f"0.{20 + at // 20_000}.0", "onnxruntime": "1.24.1"},
            cost=ModelCost(tasks=10, hits=8, trials=16, seconds=60, usd=0.02, saved_usd=0.1),
        )


def seconds_to_open(chrome: webdriver.Chrome, path: Path) -> tuple[float, float]:
    """Seconds until the chart is drawn, and for the choice of all models."""
    show(chrome, path, width=1280)
    drawn = 0.0
    while not drawn:
        drawn = chrome.execute_script(DRAWN)
    script = """
        const begun = performance.now(), select = document.getElementById("model");
        select.value = "-1";
        select.dispatchEvent(new Event("change"));
        return performance.now() - begun;
    """
    return drawn / 1000, chrome.execute_script(script) / 1000


if __name__ == "__main__":
    main()
