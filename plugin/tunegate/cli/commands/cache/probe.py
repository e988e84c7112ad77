"""`tunegate cache probe`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import CacheAddress, Options


class ProbeOptions(Options, frozen=True, kw_only=True):
    """The store that is tested."""

    cache: CacheAddress = CacheAddress()


COMMAND = Command(
    name="cache probe",
    summary="test which promises the store keeps",
    options=ProbeOptions,
    handler="tunegate.commands.cache.probe:run",
    examples=("tunegate cache probe --cache-url s3://my-bucket/tuning",),
)
