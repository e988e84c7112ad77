"""`tunegate cache doctor`, as the command line knows it."""

from __future__ import annotations

from tunegate.cli.command import Command
from tunegate.cli.shared_options import CacheAddress, Options


class CacheDoctorOptions(Options, frozen=True, kw_only=True):
    """The cache that is checked."""

    cache: CacheAddress = CacheAddress()


COMMAND = Command(
    name="cache doctor",
    summary="check the cache, and say what to do next",
    options=CacheDoctorOptions,
    handler="tunegate.commands.cache.doctor:run",
    examples=("tunegate cache doctor",),
)
