"""Prints the price of the shared cache at list prices: the table of docs/how-caching-works.md.

    python -m benchmarks.cache.cache_cost

Requests of a job are counted by the real code over a store in memory, before and after a
compaction; prices are those of S3 in us-east-1.
"""

from __future__ import annotations

from pathlib import Path

from tests.support.tuning_records import TARGET, make_key, make_record, make_shape

from benchmarks.kit.command import command_line, scratch_folder
from benchmarks.kit.tables import heading
from tunegate_cache.format.cache_statistics import usd_of
from tunegate_cache.format.names import group_of
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.s3 import S3

JOBS_A_DAY, DAYS, TASKS, BATCHES = 10_000, 30, 100, 20
TUNING_JOBS_A_DAY = 500


def main() -> None:
    command_line(__doc__)
    store = MemoryStore()
    written = fill(store)
    rows = [("look-up before any compaction", looked_up(store))]
    Compactor(
        store,
        group_of("main", TARGET),
        keys=TrustedKeys(),
        signer=None,
        seconds=lambda: 1_795_000_000,
    ).run()
    collect(store, group_of("main", TARGET), keys=TrustedKeys(), now=1)
    rows.append(("look-up after a compaction", looked_up(store)))
    rows.append((f"tuning job with {BATCHES} finished batches", written))
    heading("a job | LIST | GET | PUT | kB | USD per job | USD per month")
    for name, (requests, size) in rows:
        usd = usd_of(requests, S3.usd_per_1000_requests or {})
        jobs = TUNING_JOBS_A_DAY if "tuning" in name else JOBS_A_DAY
        print(
            f"| {name} | {requests.get('list', 0)} | {requests.get('get', 0)} | "
            f"{requests.get('put', 0)} | {size / 1000:.0f} | {usd:.7f} | {usd * jobs * DAYS:.2f} |"
        )


def cache_over(store: MemoryStore, folder: Path, mode: str) -> TuningCache:
    return TuningCache(
        store,
        zones=Zones("main", ("main", "rel")),
        mode=mode,  # type: ignore[arg-type]
        write_ahead=WriteAhead(folder),
        monotonic=lambda: 0.0,
        milliseconds=lambda: 1_795_000_000_000,
    )


def fill(store: MemoryStore) -> tuple[dict[str, int], int]:
    """A tuning job: 2,000 records in so many batches."""
    with scratch_folder() as folder:
        cache = cache_over(store, folder, "rw")
        for batch in range(BATCHES):
            cache.publish(
                [
                    make_record(
                        f"w{(batch * 100 + n) % TASKS}",
                        run_nanoseconds=(1000 + batch * 100 + n,),
                        decisions=((3, (1 + n, 1 + batch)),),
                    )
                    for n in range(100)
                ]
            )
    return dict(cache.statistics.requests), cache.statistics.bytes_written


def looked_up(store: MemoryStore) -> tuple[dict[str, int], int]:
    with scratch_folder() as folder:
        cache = cache_over(store, folder, "ro")
        cache.lookup([(make_key(f"w{n}"), make_shape()) for n in range(TASKS)])
    return dict(cache.statistics.requests), cache.statistics.bytes_read


if __name__ == "__main__":
    main()
