"""Does tuning keep its cap, and lose nothing that was finished when it is killed?

    python -m benchmarks.tuning.cap_and_kill cap [--runs 50] [--seed 1]
    python -m benchmarks.tuning.cap_and_kill kill [--runs 50] [--seed 1]

`cap` tunes a small model with random budgets of seconds, some of them as money, and takes the
time of the tuning itself. `kill` sends SIGKILL to `tunegate run` at a random moment, and
compares what the cache had been given with what it holds, or what waits on this machine for it.
Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import os
import random
import re
import signal
import statistics
import subprocess
import sys
import time
from pathlib import Path

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import CONFIG, Workspace

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.our_model import shard_of, tasks_of, tuner_of
from benchmarks.kit.tables import heading, row
from tunegate.artifacts.inputs import ShapedModel
from tunegate.config import TargetConfig
from tunegate.tune.budget import budget_of
from tunegate_cache.format.names import parse_segment
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol.segments import opened_segment
from tunegate_cache.stores.files import FileStore

TARGET = TargetConfig(name="cpu")
USD_PER_HOUR = 3.6
LOUD = """
import sys
from tunegate.cli.entry import entry
from tunegate.system.cache.shared_cache import SharedCache
enqueue = SharedCache.enqueue
def loudly(self, records):
    is_taken = enqueue(self, records)
    print("enqueued", sum(bool(r.template) for r in records), file=sys.stderr, flush=True)
    return is_taken
SharedCache.enqueue = loudly
entry()
"""
HANDED_IN = re.compile(r"^enqueued (\d+)$", re.MULTILINE)


def main() -> None:
    options = command_line(__doc__, ("what", Choice(("cap", "kill"), None)), runs=50, seed=1)
    rng = random.Random(options.seed)
    with scratch_folder() as folder:
        if options.what == "cap":
            cap(folder, options.runs, rng)
        else:
            kill(folder, options.runs, rng)


def cap(scratch: Path, runs: int, rng: random.Random) -> None:
    model = save(conv_model(channels=32, out=64, size=28), scratch / "m.onnx")
    tasks = tasks_of(model, TARGET, scratch)
    over = []
    for number in range(runs):
        seconds = rng.uniform(0.5, 12.0)
        usd = seconds * USD_PER_HOUR / 3600 if number % 2 else None
        budget = budget_of(
            None if usd else seconds, trials=None, usd=usd, usd_per_hour=USD_PER_HOUR
        )
        shard = shard_of(tasks, TARGET, budget)
        tuner = tuner_of(TARGET, scratch / str(number))
        started = time.monotonic()
        list(tuner.tune(shard, {("m.onnx", "head"): ShapedModel(model, {})}, lambda _: True))
        over.append(time.monotonic() - started - seconds)
    over.sort()
    heading("runs | budgets | over the cap, median | p90 | worst | worst in USD", words=(1,))
    print(
        f"| {runs} | 0.5 to 12 s, every other as money | {statistics.median(over):+.2f} s | "
        f"{over[int(0.9 * runs)]:+.2f} s | {over[-1]:+.2f} s | "
        f"{over[-1] * USD_PER_HOUR / 3600:+.6f} |"
    )


def kill(scratch: Path, runs: int, rng: random.Random) -> None:
    finished = kept = interrupted = 0
    worst = 0
    for number in range(runs):
        workspace = Workspace(
            scratch / str(number) / "w", CONFIG.replace("trials: 2", "trials: 4000")
        )
        with started_loudly(workspace, "run", "--minutes", "5") as process:
            time.sleep(rng.uniform(6.0, 20.0))
            os.kill(process.pid, signal.SIGKILL)
            _, said = process.communicate()
        told = finished_trials(said)
        held = kept_trials(workspace)
        interrupted += told > 0
        finished += told
        kept += held
        worst = max(worst, told - held)
    heading(
        "runs killed | while tuning | trials in finished batches | trials in the cache | lost",
        words=(),
    )
    row(runs, interrupted, finished, kept, max(0, worst))


def started_loudly(workspace: Workspace, *arguments: str) -> subprocess.Popen[str]:
    """The command with a line for every finished batch, once the cache has taken it."""
    return subprocess.Popen(
        [sys.executable, "-c", LOUD, *arguments],
        cwd=workspace.root,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "HOME": str(workspace.root.parent)},
    )


def finished_trials(said: str) -> int:
    """The number of trials in the batches that the cache had taken."""
    return sum(map(int, HANDED_IN.findall(said)))


def kept_trials(workspace: Workspace) -> int:
    """The number of trials in the cache, or on this machine's disk for the next run to deliver."""
    waiting = workspace.root.parent / ".cache" / "tunegate" / "undelivered"
    return sum(trials_in(each) for each in [workspace.root / "cache", *waiting.glob("*")])


def trials_in(cache: Path) -> int:
    store = FileStore(cache)
    found = 0
    for name in map(parse_segment, store.names("ms1/")):
        if name is not None:
            contents = opened_segment(name, store.read(name.name), TrustedKeys())
            if not isinstance(contents, str):
                found += sum(bool(record.template) for record in contents.records)
    return found


if __name__ == "__main__":
    main()
