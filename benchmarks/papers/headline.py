"""The headlines of the works behind the product: what each of them says, by its own definition."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import NamedTuple

import msgspec

TRIMMER = "Trimmer"
DOPPLER = "DOPpler"
TRANSFER = "transfer-tuning"
GSPC = "GSPC"
ONE_SHOT = "One-Shot Tuner"
META = "MetaTune"
MONO = "MonoDNN"


class Headline(msgspec.Struct, frozen=True):
    """`defined` is what the work measures, `paper` the figure that it reports."""

    name: str
    work: str
    defined: str
    paper: str


class Figure(NamedTuple):
    """One measured row: the headline's name, the figure here, and on what it was measured."""

    name: str
    here: str
    on: str


Experiment = Callable[[Path], Iterator[Figure]]
"""Measures one headline or several in an empty folder, and yields each as soon as it is known."""

HEADLINES = (
    Headline(
        "energy-saved",
        TRIMMER,
        "energy that filtering and stopping early save of a run with a fixed number of trials, and "
        "the latency that this costs",
        "21.8 to 40.9%, equal latency",
    ),
    Headline(
        "energy-to-equal-latency",
        TRIMMER,
        "energy that filter and cost objective save until the latency is reached at which the run "
        "without them ends",
        "not reported",
    ),
    Headline(
        "wasted-share",
        TRIMMER,
        "share of the cost in candidates that improved nothing, without and with both mechanisms",
        "26 to 43% without",
    ),
    Headline(
        "tuning-time",
        DOPPLER,
        "share of tuning time saved with the same candidates, and how much slower the choice is",
        "50.5%, equal latency",
    ),
    Headline(
        "measured-beside",
        DOPPLER,
        "share of the time of measuring alone that the control law of the degree saves, and "
        "Kendall's tau with the times alone",
        "not reported apart",
    ),
    Headline(
        "time-without-neighbours",
        TRANSFER,
        "how many times longer the same search takes without neighbours to what it has with them "
        "once every task has tried what they offer",
        "6.5x on a server, 10.8x on a small board",
    ),
    Headline(
        "speed-up-unmeasured",
        TRANSFER,
        "share of the full search's speed-up that neighbours' schedules give end to end with "
        "nothing measured (the paper measures each schedule)",
        "49.13% mean, 88.41% most, measured",
    ),
    Headline(
        "grouped-existing",
        GSPC,
        "time of what exists over ours, geometric mean over the numbers of groups",
        "3.4x TVM, 8x PyTorch, 4x TFLite",
    ),
    Headline(
        "grouped-scaling",
        GSPC,
        "time x G over the time at one group, which work alone would make 1",
        "falls with G, no figure",
    ),
    Headline(
        "compile-time",
        ONE_SHOT,
        "time of a measuring search, which has the prior too, to the latency of picks that nobody "
        "measured, over the time of these",
        "2.81x to 67.7x, data collection left out",
    ),
    Headline(
        "unmeasured-latency",
        ONE_SHOT,
        "latency of the picks over that of the long search, beside random picks, shuffled labels "
        "and default schedules",
        "0.83 to 1.05, with one batch of 64 measured",
    ),
    Headline(
        "pays-from",
        ONE_SHOT,
        "tasks from which collecting the data has paid",
        "not reported",
    ),
    Headline(
        "few-shot",
        META,
        "best time after equal trials: learning from scratch, and what was learned before frozen, "
        "each over the same adapted by the task",
        "8 to 13% faster than from scratch, 10% than transfer learning",
    ),
    Headline(
        "one-launch",
        MONO,
        "time with a launch for each kernel over that of one call for the whole model",
        "1.91x mean, 2.49x most, on a GPU",
    ),
)
