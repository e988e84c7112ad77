"""Claims a device: which one, and where its lock is."""

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

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.ci.registry import run_address
from tunegate.errors import EnvironmentUnfitError


class Claim(msgspec.Struct, frozen=True, kw_only=True):
    """A claim on the device with this identity, by a run that can be found under `run`. Any process
    that gets a claim can request the device with it."""

    uuid: str
    directory: str
    wait_seconds: float
    run: str = ""

    @property
    def path(self) -> Path:
        name = re.sub(r"[^A-Za-z0-9._-]", "_", self.uuid)
        return Path(self.directory) / f"tunegate-{name}.lock"


# A kernel lock on a file: one user of a device at a time on this host. A CI's own concurrency
# groups know only one repository, but runners of several, and people, share a GPU.

LOCK_DIRECTORY = "TUNEGATE_LOCK_DIR"
_USUAL = Path("/run/lock")
_MIN_POLL, _MAX_POLL = 0.001, 0.05
_MAX_BYTES = 2000
_EVERYBODY = 0o666
_OPENED = os.O_RDWR | os.O_CLOEXEC | os.O_NOFOLLOW


class Holder(msgspec.Struct, frozen=True, kw_only=True):
    """The holder of the device, by the lock's file. Anybody may write it: it is shown, never
    trusted."""

    pid: int
    run: str = ""
    since: float = 0.0


def claim_on(uuid: str, *, wait_seconds: float, variables: Mapping[str, str] = os.environ) -> Claim:
    """Returns a claim whose lock file every job of the host finds; for a job in a container
    `TUNEGATE_LOCK_DIR` must be a directory of the host."""
    usual = _USUAL if os.access(_USUAL, os.W_OK) else Path(tempfile.gettempdir())
    directory = Path(variables.get(LOCK_DIRECTORY) or usual).absolute()
    run = run_address(variables)
    return Claim(uuid=uuid, directory=str(directory), wait_seconds=wait_seconds, run=run)


@contextmanager
def held_device(claim: Claim, *alternatives: Claim) -> Iterator[Claim]:
    """Holds the first of the claims that becomes free, for as short as possible. The kernel frees
    the lock when the holding process ends in any way; the file stays. Raises EnvironmentUnfitError
    if others have all of them for longer than the first claim waits, or a file is unusable."""
    claims = (claim, *alternatives)
    with ExitStack() as stack:
        files = []
        for each in claims:
            files.append(_open(each))
            stack.callback(os.close, files[-1])
        place = _acquire(files, claims)
        _sign(files[place], claims[place])
        yield claims[place]


def holder_of(claim: Claim) -> Holder | None:
    """Returns the holder of the device, None if nobody wrote one, or not legibly."""
    try:
        with claim.path.open("rb") as file:
            content = file.read(_MAX_BYTES)
        return msgspec.json.decode(content, type=Holder)
    except (OSError, *NOT_JSON):
        return None


def _open(claim: Claim) -> int:
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
        message = (
            f"{claim.path}: the device's lock is not a file. Remove it or set {LOCK_DIRECTORY}."
        )
        raise EnvironmentUnfitError(message)
    with contextlib.suppress(OSError):  # of another user, who has already done it
        os.fchmod(file, _EVERYBODY)
    return file


def _acquire(files: Sequence[int], claims: Sequence[Claim]) -> int:
    """Locks the first free file, and returns its index."""
    began = time.monotonic()
    while True:
        for place, file in enumerate(files):
            with contextlib.suppress(BlockingIOError):
                _lock(file, claims[place])
                return place
        seconds = time.monotonic() - began
        seconds_left = claims[0].wait_seconds - seconds
        if seconds_left <= 0:
            raise EnvironmentUnfitError(_refusal(claims[0]))
        time.sleep(min(seconds_left, max(_MIN_POLL, min(_MAX_POLL, seconds / 10))))


def _lock(file: int, claim: Claim) -> None:
    """Raises BlockingIOError if somebody has it, EnvironmentUnfitError where files cannot be
    locked: that is no candidate's fault."""
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise
    except OSError as error:
        message = (
            f"{claim.path}: cannot be locked ({error.strerror}). "
            f"Set {LOCK_DIRECTORY}, or --out, to a directory of a disk whose files can be."
        )
        raise EnvironmentUnfitError(message) from error


def _refusal(claim: Claim) -> str:
    holder = holder_of(claim)
    who = "somebody" if holder is None else f"process {holder.pid}"
    if holder is not None and holder.run:
        who += f" of {holder.run[:200]}"
    return (
        f"{claim.uuid}: {who} has had this device for more than {claim.wait_seconds:g} s. "
        "Run fewer jobs beside each other on this machine, or raise targets[].device-wait-seconds, "
        "which counts once it is merged."
    )


def _sign(file: int, claim: Claim) -> None:
    holder = Holder(pid=os.getpid(), run=claim.run, since=time.time())
    with contextlib.suppress(OSError):  # a full disk: the lock holds without a name
        os.ftruncate(file, 0)
        os.pwrite(file, msgspec.json.encode(holder), 0)
