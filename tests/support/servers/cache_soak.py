"""Real processes at work on one bucket, killed at random: writers, a compactor, a collector, a
reader. What a writer was told is stored is noted in a file and looked for at the end."""

import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import msgspec

from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import ExactHit, Miss
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol.tuning_cache import TuningCache
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import StoreUnavailableError

ROLES = ("write", "write", "write", "write", "compact", "compact", "collect", "read")
MAIN = group_of("main", TARGET)
KEYS = TrustedKeys()
_MORE_SECONDS = 60.0


class Soaked(msgspec.Struct, frozen=True, kw_only=True):
    """`gaps` are tasks that a look-up called absent though they were acknowledged before it began.
    A look-up that ran out of time says so, and is none."""

    acknowledged: int
    visible: int
    reads: int
    gaps: int
    kills: int
    compactions: int


def soak(url: str, folder: Path, *, seconds: float, seed: int, records: int = 0) -> Soaked:
    """Runs the roles for that long, kills one about every second, and counts. A machine that is
    busy gets a minute more for so many records and one compaction."""
    rng = random.Random(seed)
    workers = [(role, _start(role, n, url, folder)) for n, role in enumerate(ROLES)]
    kills, number = 0, len(ROLES)
    ends = time.monotonic() + seconds
    while (now := time.monotonic()) < ends or (
        now < ends + _MORE_SECONDS and not _is_enough(folder, records)
    ):
        slowed = 1 if now < ends else 6  # a slow machine takes seconds to start a compaction
        time.sleep(rng.uniform(0.2, 1.5) * slowed)
        index = rng.randrange(len(workers))
        role, process = workers[index]
        process.send_signal(signal.SIGKILL)
        process.wait()
        kills += 1
        number += 1
        workers[index] = role, _start(role, number, url, folder)
    for _, process in workers:
        process.kill()
        process.wait()
    return _count(url, folder, kills)


def _is_enough(folder: Path, records: int) -> bool:
    found = len(_lines(folder, "acknowledged"))
    return found >= records and (not records or bool(_lines(folder, "compactions")))


def _start(role: str, number: int, url: str, folder: Path) -> subprocess.Popen[bytes]:
    line = [
        sys.executable,
        "-m",
        "tests.support.servers.cache_soak",
        role,
        str(number),
        url,
        str(folder),
    ]
    return subprocess.Popen(line)


def _count(url: str, folder: Path, kills: int) -> Soaked:
    store = store_at(url)
    cache_of(store, folder, "heal").lookup([(make_key(), make_shape())])  # delivers what waits
    Compactor(store, MAIN, keys=KEYS, signer=None, seconds=_now).run()
    acknowledged = _lines(folder, "acknowledged")
    found = cache_of(store, folder, "last").lookup(
        [(make_key(w), make_shape()) for w in acknowledged]
    )
    return Soaked(
        acknowledged=len(acknowledged),
        visible=sum(isinstance(found[make_key(w)], ExactHit) for w in acknowledged),
        reads=len(_lines(folder, "reads")),
        gaps=len(_lines(folder, "gaps")),
        kills=kills,
        compactions=len(_lines(folder, "compactions")),
    )


def store_at(url: str) -> S3Store:
    return S3Store("tuning", "soak", endpoint_url=url, region="us-east-1")


def cache_of(store: S3Store, folder: Path, name: str) -> TuningCache:
    return cache_over(store, folder)


def main(role: str, number: str, url: str, folder: Path) -> None:
    store = store_at(url)
    while True:
        if role == "write":
            _write(store, folder, number)
        elif role == "read":
            _read(store, folder)
        else:
            _maintain(role, store, folder)


def _write(store: S3Store, folder: Path, number: str) -> None:
    cache = cache_of(store, folder, number)
    for count in range(50):
        workload = f"{number}-{time.time_ns()}-{count}"
        if cache.publish([make_record(workload)]):
            _note(folder, "acknowledged", workload)
        time.sleep(0.1)


def _read(store: S3Store, folder: Path) -> None:
    before = _lines(folder, "acknowledged")
    if not before:
        return
    sample = random.sample(before, min(50, len(before)))
    found = cache_of(store, folder, "read").lookup([(make_key(w), make_shape()) for w in sample])
    missing = [w for w in sample if found[make_key(w)] == Miss("absent")]
    _note(folder, "reads", str(len(sample)))
    for workload in missing:
        _note(folder, "gaps", workload)


def _maintain(role: str, store: S3Store, folder: Path) -> None:
    try:
        if role == "compact":
            done = Compactor(store, MAIN, keys=KEYS, signer=None, seconds=_now).run()
            _note(folder, "compactions", done.status)
        else:
            collect(store, MAIN, keys=KEYS, now=_now(), grace_seconds=2)
    except StoreUnavailableError:
        return


def _now() -> int:
    return int(time.time())


def _note(folder: Path, name: str, line: str) -> None:
    """One write of one line: a killed process leaves all of it or nothing."""
    with (folder / name).open("ab", buffering=0) as file:
        file.write(f"{line}\n".encode())


def _lines(folder: Path, name: str) -> list[str]:
    path = folder / name
    return path.read_text().split() if path.exists() else []


if __name__ == "__main__":
    main(sys.argv[1], sys.argv[2], sys.argv[3], Path(sys.argv[4]))
