"""Declares the commands that one begins with: `init`, `doctor`, `demo` and `completion`."""

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
    summary="write a tunegate.yaml for the models found here, and a workflow where it can",
    options=InitOptions,
    handler="tunegate.cli.handlers.init:run",
    examples=(
        "tunegate init",
        "tunegate init --repository ../models --force",
    ),
)


# Declares `tunegate doctor`.


class DoctorOptions(Options, frozen=True, kw_only=True):
    """Options of `doctor`: the cache to check. Exit code 2: the configuration is wrong; 4: the
    machine or the cache is. With `--quiet` only problems are printed."""

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


# Declares `tunegate demo`.


class DemoOptions(Options, frozen=True, kw_only=True):
    """Options of `demo`: where it plays, how long, and how exact."""

    quick: Annotated[bool, Option("one module of the network, less tuning: two minutes")] = False

    max_error: Annotated[
        float | None,
        Option(
            "the error that its model may have: builds in bfloat16 and others then compete, too",
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


# Declares `tunegate completion`.

Shell = Literal["bash", "zsh", "fish"]


class CompletionOptions(Options, frozen=True, kw_only=True):
    """Options of `completion`: the shell."""

    shell: Annotated[Shell, Argument("the shell", "SHELL", choices=get_args(Shell))]


COMPLETION = Command(
    name="completion",
    summary="print the script that completes commands in a shell",
    options=CompletionOptions,
    handler="tunegate.cli.handlers.completion:run",
    examples=(
        "tunegate completion bash",
        "tunegate completion zsh",
        "tunegate completion fish",
    ),
)
