"""Makes the figures of docs/benchmarks/gpu.md of what a lease has brought back.

    python -m benchmarks.gpu_figures FOLDER

FOLDER has gpu.json and steps.tar.gz of `benchmarks/gpu.sh`, which had `--every` or not. Writes
results/gpu_peers.json, with the machine of the lease and a sentence that follows from the figures,
and all pages. Ends with 1 where no model has both times.
"""

from __future__ import annotations

import datetime
import json
import math
import statistics
import sys
import tarfile
import tempfile
from pathlib import Path
from typing import Any

from benchmarks import gpu_job, gpu_models
from benchmarks.kit import page, results
from benchmarks.kit.command import command_line
from benchmarks.kit.markdown_tables import Table

NAME = "gpu_peers"
GOAL = 0.9
_EVERY = "OUT=results benchmarks/gpu.sh PARTS -- --every"
_COMPARED_HOW = (
    "Models that PyTorch exports, with random weights, float32 without TF32, batch 1. PyTorch is "
    "the best of eager, a CUDA graph and `torch.compile`, by CUDA events; tunegate is what ships "
    "after `warm`, in milliseconds of the gate's launches on new weights."
)


def main() -> int:
    options = command_line(__doc__, ("folder", Path))
    result = figures(options.folder)
    if result is None:
        print("no model has a time of PyTorch and one of tunegate", file=sys.stderr)
        return 1
    results.write(results.RESULTS / f"{NAME}.json", result)
    page.main()
    print(result.says)
    return 0


def figures(folder: Path) -> results.Result | None:
    """Returns the result of a job, None where no model has both times."""
    job: dict[str, Any] = json.loads((folder / "gpu.json").read_text())
    with tempfile.TemporaryDirectory() as kept:
        with tarfile.open(folder / "steps.tar.gz") as packed:
            packed.extractall(kept, filter="data")
        rows = [*gpu_job.compared(Path(kept), [*gpu_models.MODELS])]
        in_float16 = [*gpu_job.in_float16(Path(kept))]
    # A model that was not exported, and never judged, was none of this job.
    rows = [row for row in rows if row[1] or row[4] != "none"]
    ratios = [float(row[3]) for row in rows if row[3]]
    if not ratios:
        return None
    tables = [Table(tuple(gpu_job.COMPARED.split(" | ")), tuple(rows), (0, 4))]
    if in_float16:
        columns = tuple(gpu_job.IN_FLOAT16.split(" | "))
        tables.append(Table(columns, tuple(in_float16), (0, 1)))
    mean = math.exp(statistics.fmean(map(math.log, ratios)))
    under = sum(ratio <= GOAL for ratio in ratios)
    return results.Result(
        title="Beside PyTorch on a GPU",
        group="GPU",
        says=(
            f"tunegate takes {mean:.2f}x the time of PyTorch's best in float32, in the geometric "
            f"mean of {len(ratios)} models ({min(ratios):.2f}x to {max(ratios):.2f}x); {under} of "
            f"them {'reaches' if under == 1 else 'reach'} the goal of {GOAL}x."
        ),
        compared=_COMPARED_HOW,
        command=_EVERY,
        machine=job["machine"],
        date=datetime.datetime.now(datetime.UTC).date().isoformat(),
        commit=results.commit(),
        tables=tuple(tables),
    )


if __name__ == "__main__":
    sys.exit(main())
