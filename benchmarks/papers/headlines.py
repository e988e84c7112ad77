"""The headlines of the works behind the product, each by its own definition, beside ours.

    python -m benchmarks.papers.headlines [--row NAME ...] [--save papers --merge]

Without `--row` all are measured, which takes about an hour on two cores. Rows that come out of the
same runs are measured together: naming one of them makes all. A row says what it was measured on,
when, and how many processes wanted to run then. Figures that miss the paper's stay in the table.
Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import datetime
import os
from collections.abc import Mapping

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.models import one_thread
from benchmarks.kit.results import commit
from benchmarks.kit.tables import heading, row
from benchmarks.papers import (
    equal_candidates,
    few_shot,
    groups,
    neighbours,
    one_call,
    saved_energy,
    unmeasured,
)
from benchmarks.papers.headline import HEADLINES, Experiment, Figure

EXPERIMENTS: Mapping[Experiment, tuple[str, ...]] = {
    saved_energy.figures: ("energy-saved", "energy-to-equal-latency", "wasted-share"),
    equal_candidates.figures: ("tuning-time", "measured-beside"),
    neighbours.figures: ("time-without-neighbours", "speed-up-unmeasured"),
    groups.figures: ("grouped-existing", "grouped-scaling"),
    unmeasured.figures: ("compile-time", "unmeasured-latency", "pays-from"),
    few_shot.figures: ("few-shot",),
    one_call.figures: ("one-launch",),
}
WORDS = range(7)


def main() -> None:
    names = [headline.name for headline in HEADLINES]
    options = command_line(__doc__, row=Choice(names, names))
    one_thread()
    heading("row | work | by its definition | the paper | here | measured on | when", WORDS)
    for measure, its in EXPERIMENTS.items():
        if set(its) & set(options.row):
            with scratch_folder() as scratch:
                for figure in measure(scratch):
                    show(figure)


def show(figure: Figure) -> None:
    headline = next(each for each in HEADLINES if each.name == figure.name)
    today = datetime.datetime.now(datetime.UTC).date().isoformat()
    when = f"{today}, load {os.getloadavg()[1]:.0f}, {commit()}"
    told = (f"`{headline.name}`", headline.work, headline.defined, headline.paper)
    row(*told, figure.here, figure.on, when)


if __name__ == "__main__":
    main()
