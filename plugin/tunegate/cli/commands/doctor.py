"""`tunegate doctor`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import CacheAddress, Options


class DoctorOptions(Options, frozen=True, kw_only=True):
    """The cache that is checked. Exit code 2: the configuration is wrong; 4: the machine or the
    cache is. With `--quiet` it prints what is wrong alone."""

    cache: CacheAddress = CacheAddress()


COMMAND = Command(
    name="doctor",
    summary="check versions, devices, cache and configuration",
    options=DoctorOptions,
    handler="tunegate.commands.diagnosing.doctor:run",
    examples=(
        "tunegate doctor",
        "tunegate doctor --cache-url s3://my-bucket/tuning --json",
    ),
)
