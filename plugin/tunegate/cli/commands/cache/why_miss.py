"""`tunegate cache why-miss`, as the command line knows it."""

from __future__ import annotations

from typing import Annotated

from tunegate.cli.command import Command
from tunegate.cli.option import Argument
from tunegate.cli.shared_options import CacheAddress, Options


class WhyMissOptions(Options, frozen=True, kw_only=True):
    """The task that was not found."""

    cache: CacheAddress = CacheAddress()
    task: Annotated[str, Argument("a layer's name, MODEL:NAME, or a workload digest", "TASK")]


COMMAND = Command(
    name="cache why-miss",
    summary="say why a task of the last plan was not found",
    options=WhyMissOptions,
    handler="tunegate.commands.cache.why_miss:run",
    examples=("tunegate cache why-miss layer1.0.conv1",),
)
