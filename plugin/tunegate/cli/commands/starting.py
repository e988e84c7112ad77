"""`tunegate init`, as the command line knows it."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Literal, get_args

from tunegate.cli.command import Command
from tunegate.cli.option import Argument, Option, percentage
from tunegate.cli.shared_options import CacheAddress, Options


class InitOptions(Options, frozen=True, kw_only=True):
    """Options of `init`."""

    force: Annotated[bool, Option("overwrite existing files")] = False


INIT = Command(
    name="init",
    summary="write a tunegate.yaml and a workflow for the models found here",
    options=InitOptions,
    handler="tunegate.cli.handlers.init:run",
    examples=(
        "tunegate init",
        "tunegate init --repository ../models --force",
    ),
)


# `tunegate doctor`, as the command line knows it.


class DoctorOptions(Options, frozen=True, kw_only=True):
    """The cache that is checked. Exit code 2: the configuration is wrong; 4: the machine or the
    cache is. With `--quiet` it prints what is wrong alone."""

    cache: CacheAddress = CacheAddress()


DOCTOR = Command(
    name="doctor",
    summary="check versions, devices, cache and configuration",
    options=DoctorOptions,
    handler="tunegate.cli.handlers.doctor:run",
    examples=(
        "tunegate doctor",
        "tunegate doctor --cache-url s3://my-bucket/tuning --json",
    ),
)


# `tunegate demo`, as the command line knows it.


class DemoOptions(Options, frozen=True, kw_only=True):
    """The options of `demo`: where it is played, how long, and how exact."""

    quick: Annotated[bool, Option("one module of the network, less tuning: two minutes")] = False

    max_error: Annotated[
        float | None,
        Option(
            "an error that its model may have: bfloat16 and others are elected from, too",
            "PERCENT",
            percentage,
        ),
    ] = None

    directory: Annotated[Path, Option("where the repository of the demo is made", "DIR", Path)] = (
        Path(".demo")
    )


DEMO = Command(
    name="demo",
    summary="play three pull requests in a throw-away repository",
    options=DemoOptions,
    handler="tunegate.cli.handlers.demo:run_demo",
    examples=(
        "tunegate demo",
        "tunegate demo --quick",
        "tunegate demo --quick --max-error 5",
        "tunegate demo --directory /tmp/demo",
    ),
)


# `tunegate completion`, as the command line knows it.

Shell = Literal["bash", "zsh", "fish"]


class CompletionOptions(Options, frozen=True, kw_only=True):
    """The shell that completes."""

    shell: Annotated[Shell, Argument("the shell", "SHELL", choices=get_args(Shell))]


COMPLETION = Command(
    name="completion",
    summary="print what makes a shell complete commands and options",
    options=CompletionOptions,
    handler="tunegate.cli.handlers.completion:run",
    examples=(
        "tunegate completion bash",
        "tunegate completion zsh",
        "tunegate completion fish",
    ),
)
