"""A claim on a device: which one, and where its lock is."""

from __future__ import annotations

import contextlib
import fcntl
import os
import re
import stat
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path

import msgspec

from tunegate.ci.registry import run_address
from tunegate.errors import EnvironmentUnfitError


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on the device with this identity, by a run that can be found under `run`. Whoever
    gets a claim, in whatever process, can ask for the device with it."""

    uuid: str
    directory: str
    wait_seconds: float
    run: str = ""

    @property
    def path(self) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.uuid)
        return Path(self.directory) / f"tunegate-{name}.lock"


# A lock of the kernel's on a file: one user of a device at a time on this host. A CI's own
# concurrency groups know one repository; runners of several, and people, share a GPU.

LOCK_DIRECTORY = "TUNEGATE_LOCK_DIR"
_USUAL = Path("/run/lock")
_MIN_POLL, _MAX_POLL = 0.001, 0.05
_MAX_BYTES = 2000
_EVERYBODY = 0o666
_OPENED = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of the device, by the lock's file. Anybody may write it: show it, and believe
    nothing."""

    pid: int
    run: str = ""
    since: float = 0.0


def claim_on(uuid: str, *, wait_seconds: float, variables: Mapping[str, str] = os.environ) -> Claim:
    """The file lies where every job of the host finds it: for a job in a container
    `TUNEGATE_LOCK_DIR` must be a directory of the host's."""
    usual = _USUAL if os.access(_USUAL, os.W_OK) else Path(tempfile.gettempdir())
    directory = Path(variables.get(LOCK_DIRECTORY) or usual).absolute()
    run = run_address(variables)
    return Claim(uuid=uuid, directory=str(directory), wait_seconds=wait_seconds, run=run)


@contextmanager
def held_device(claim: Claim, *others: Claim) -> Iterator[Claim]:
    """The first of the claims that is free, for as short a time as possible. The kernel
    frees the lock with the process that holds it, however that ends; the file stays.
    Raises EnvironmentUnfitError when others have them all for longer than the first claim
    waits, or a file cannot be used."""
    claims = (claim, *others)
    with ExitStack() as stack:
        files = []
        for each in claims:
            files.append(_opened(each))
            stack.callback(os.close, files[-1])
        taken = _acquire(files, claims)
        _sign(files[taken], claims[taken])
        yield claims[taken]


def holder_of(claim: Claim) -> Holder | None:
    """The holder of the device, or None where nobody has written it, or not legibly."""
    try:
        written = claim.path.read_bytes()[:_MAX_BYTES]
        return msgspec.json.decode(written, type=Holder)
    except (OSError, msgspec.DecodeError, UnicodeDecodeError):
        return None


def _opened(claim: Claim) -> int:
    try:
        # O_CREAT on an existing file of another user is refused in a sticky
        # directory (protected_regular).
        try:
            file = os.open(claim.path, _OPENED)
        except FileNotFoundError:
            file = os.open(claim.path, _OPENED | os.O_CREAT, _EVERYBODY)
    except OSError as error:
        message = (
            f"{claim.path}: the device's lock cannot be opened ({error.strerror}). "
            f"Set {LOCK_DIRECTORY}."
        )
        raise EnvironmentUnfitError(message) from error
    if not stat.S_ISREG(os.fstat(file).st_mode):
        os.close(file)
        message = f"{claim.path}: the device's lock is no file. Remove it, or set {LOCK_DIRECTORY}."
        raise EnvironmentUnfitError(message)
    with contextlib.suppress(OSError):  # of another user, who has done it
        os.fchmod(file, _EVERYBODY)
    return file


def _acquire(files: Sequence[int], claims: Sequence[Claim]) -> int:
    """The place of the one that was free."""
    started = time.monotonic()
    while True:
        for place, file in enumerate(files):
            with contextlib.suppress(BlockingIOError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                return place
        waited = time.monotonic() - started
        left = claims[0].wait_seconds - waited
        if left <= 0:
            raise EnvironmentUnfitError(_refusal(claims[0]))
        time.sleep(min(left, max(_MIN_POLL, min(_MAX_POLL, waited / 10))))


def _refusal(claim: Claim) -> str:
    holder = holder_of(claim)
    who = "somebody" if holder is None else f"process {holder.pid}"
    if holder is not None and holder.run:
        who += f" of {holder.run[:200]}"
    return (
        f"{claim.uuid}: {who} has had this device for more than {claim.wait_seconds:g} s. "
        f"Run fewer jobs beside each other on this machine, or raise targets[].device-wait-seconds."
    )


def _sign(file: int, claim: Claim) -> None:
    holder = Holder(pid=os.getpid(), run=claim.run, since=time.time())
    with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(holder), 0)
