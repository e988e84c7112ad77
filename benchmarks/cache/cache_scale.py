"""A million records of a thousand tasks in a bucket: compaction, a cold look-up, and the stock
database's load beside it.

    python -m benchmarks.cache.cache_scale [--records 1000000] [--tasks 1000]

Everything is real but the records: a moto server, HTTP through a proxy that makes every request
wait 5 ms, fresh processes. Prints the table of docs/benchmarks.
"""

from __future__ import annotations

import argparse
import json
import os
import random
import resource
import socket
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager, suppress
from pathlib import Path
from urllib.parse import urlsplit

from tests.support.servers.moto_server import BUCKET, CREDENTIALS, moto_server
from tests.support.tuning_records import TARGET, hexdigest, make_record

from benchmarks.kit.command import Choice, command_line, scratch_folder
from benchmarks.kit.tables import heading
from tunegate_cache.format import names, segment
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.s3 import S3Store

SKELETONS, BATCH, WANTED, NEW_SHAPES = 50, 2000, 100, 20
LATENCY_SECONDS = 0.005
STOCK_RECORDS = 10_000


def main() -> None:
    options = command_line(
        __doc__,
        records=1_000_000,
        tasks=1000,
        step=Choice(("compact", "lookup", "stock"), None),
        url="",
    )
    os.environ.update(CREDENTIALS)
    if options.step == "compact":
        show(compact(options.url))
    elif options.step == "lookup":
        show(lookup(options.url, options.tasks))
    elif options.step == "stock":
        show(load_stock(Path(options.url)))
    else:
        run(options)


def run(options: argparse.Namespace) -> None:
    with moto_server() as url, slow_proxy(url, seconds=LATENCY_SECONDS) as slow:
        started = time.monotonic()
        size = fill(store_at(url), options.records, options.tasks)
        print(
            f"{options.records} records, {options.tasks} tasks, {size / 1e6:.0f} MB in segments, "
            f"written in {time.monotonic() - started:.0f} s",
            flush=True,
        )
        compacted = child(options, "compact", slow)
        found = [child(options, "lookup", slow) for _ in range(3)]
    with scratch_folder() as scratch:
        make_stock(scratch)
        stock = child(options, "stock", str(scratch))
    table(options.records, compacted, sorted(found, key=lambda f: f["seconds"])[1], stock)


def store_at(url: str) -> S3Store:
    return S3Store(BUCKET, "scale", endpoint_url=url, region="us-east-1")


def task(number: int) -> tuple[WorkloadKey, WorkloadShape]:
    """Tasks of one skeleton differ in two extents."""
    skeleton, member = number % SKELETONS, number // SKELETONS
    extents = (8 * (1 + member % 7), 16 * (1 + member // 7), 3, 3)
    shape = WorkloadShape(hexdigest(f"skeleton {skeleton}"), extents)
    return WorkloadKey(hexdigest(f"task {number}"), TARGET), shape


def record(rng: random.Random, tasks: int) -> TuningRecord:
    key, shape = task(rng.randrange(tasks))
    tiles = tuple(
        (index, tuple(2 ** rng.randrange(6) for _ in range(4))) for index in (2, 5, 8, 11)
    )
    failed = rng.random() < 0.1
    middle = int(1e6 * rng.lognormvariate(0, 1))
    return make_record(
        key=key,
        shape=shape,
        decisions=(*tiles, (14, (rng.randrange(5),))),
        status="timeout" if failed else "ok",
        run_nanoseconds=() if failed else (middle, middle + 900, middle + 1800),
        device=DeviceFingerprint(
            name=f"device {rng.randrange(3)}", kind="cpu", units=8, memory_bytes=2**35
        ),
        measured_at=1_795_000_000 + rng.randrange(10**6),
    )


def fill(store: S3Store, records: int, tasks: int) -> int:
    """One segment for each CI job. Returns bytes."""
    rng = random.Random(1)

    def write(number: int, body: bytes) -> int:
        name = names.segment_name(
            "main",
            TARGET,
            milliseconds=1_795_000_000_000 + number,
            writer="0" * 8,
            digest=segment.segment_digest(body),
        )
        store.write(name.name, body)
        return len(body)

    with ThreadPoolExecutor(4) as pool:
        written = []
        for number in range(records // BATCH):
            body = segment.pack_segment([record(rng, tasks) for _ in range(BATCH)])
            written.append(pool.submit(write, number, body))
        return sum(w.result() for w in written)


def compact(url: str) -> dict[str, float]:
    store, group = store_at(url), group_of("main", TARGET)
    started = time.monotonic()
    done = Compactor(
        store, group, keys=TrustedKeys(), signer=None, seconds=lambda: int(time.time())
    ).run()
    compacted = time.monotonic()
    deleted = collect(store, group, keys=TrustedKeys(), now=int(time.time()))
    return {
        "seconds": compacted - started,
        "collect_seconds": time.monotonic() - compacted,
        "megabytes": peak_megabytes(),
        "records": done.records,
        "deleted": deleted.segments,
    }


def lookup(url: str, tasks: int) -> dict[str, float]:
    """A model of a hundred tasks: four fifths known, the others new shapes of known skeletons."""
    known = [task(number) for number in range(0, tasks, max(1, tasks // (WANTED - NEW_SHAPES)))]
    new = [
        (
            WorkloadKey(hexdigest(f"new {number}"), TARGET),
            WorkloadShape(hexdigest(f"skeleton {number}"), (24, 40 + number, 3, 3)),
        )
        for number in range(NEW_SHAPES)
    ]
    wanted = [*known[: WANTED - NEW_SHAPES], *new]
    with scratch_folder() as scratch:
        started = time.monotonic()
        cache = TuningCache(
            store_at(url),
            zones=Zones("pr/o/r/7", ("main", "rel")),
            mode="ro",
            write_ahead=WriteAhead(scratch),
            monotonic=time.monotonic,
            milliseconds=lambda: 1_800_000_000_000,
        )
        found = cache.lookup(wanted)
        cache.claims(wanted)
        seconds = time.monotonic() - started
    return {
        "seconds": seconds,
        "requests": sum(cache.statistics.requests.values()),
        "megabytes_read": cache.statistics.bytes_read / 1e6,
        "megabytes": peak_megabytes(),
        "exact": sum(isinstance(hit, ExactHit) for hit in found.values()),
        "transfer": sum(isinstance(hit, TransferHit) for hit in found.values()),
    }


def make_stock(folder: Path) -> None:
    """A stock database of matmul candidates, written by TVM itself."""
    # Only the stock side may know TVM: the cache's own processes are measured without it.
    import tvm  # noqa: PLC0415
    from tvm import te  # noqa: PLC0415
    from tvm.s_tir import meta_schedule as ms  # noqa: PLC0415

    a, b = te.placeholder((128, 128), name="A"), te.placeholder((128, 128), name="B")
    k = te.reduce_axis((0, 128))
    c = te.compute((128, 128), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")
    module = tvm.IRModule({"main": te.create_prim_func([a, b, c])})
    target = tvm.target.Target({"kind": "llvm", "num-cores": 2})
    context = ms.TuneContext(
        mod=module, target=target, space_generator="post-order-apply", rand_state=1, num_threads=1
    )
    schedule = context.generate_design_space()[-1]
    database = ms.database.JSONDatabase(str(folder / "workload.json"), str(folder / "records.json"))
    workload = database.commit_workload(module)
    arguments = ms.arg_info.ArgInfo.from_prim_func(module["main"])
    for number in range(STOCK_RECORDS):
        database.commit_tuning_record(
            ms.database.TuningRecord(
                schedule.trace, workload, [1e-3 + number * 1e-9], target, arguments
            )
        )


def load_stock(folder: Path) -> dict[str, float]:
    from tvm.s_tir import meta_schedule as ms  # noqa: PLC0415

    before = peak_megabytes()
    started = time.monotonic()
    database = ms.database.JSONDatabase(str(folder / "workload.json"), str(folder / "records.json"))
    return {
        "seconds": time.monotonic() - started,
        "records": len(database),
        "megabytes": peak_megabytes() - before,
    }


def child(options: argparse.Namespace, step: str, url: str) -> dict[str, float]:
    line = [
        sys.executable,
        "-m",
        "benchmarks.cache.cache_scale",
        "--step",
        step,
        "--url",
        url,
        "--tasks",
        str(options.tasks),
    ]
    done = subprocess.run(line, capture_output=True, text=True, check=False)
    if done.returncode:
        sys.exit(done.stderr)
    figures: dict[str, float] = json.loads(done.stdout.splitlines()[-1])
    return figures


def peak_megabytes() -> float:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


def show(figures: dict[str, float]) -> None:
    print(json.dumps(figures))


def table(
    records: int,
    compacted: dict[str, float],
    found: dict[str, float],
    stock: dict[str, float],
) -> None:
    each = stock["seconds"] / stock["records"]
    heading(" | seconds | requests | MB resident | ", words=(0, 4))
    print(
        f"| compaction of {compacted['records']:.0f} records | {compacted['seconds']:.1f} | "
        f"| {compacted['megabytes']:.0f} | |"
    )
    print(
        f"| collection | {compacted['collect_seconds']:.1f} | | | "
        f"{compacted['deleted']:.0f} segments deleted |"
    )
    print(
        f"| cold look-up of {WANTED} tasks, 3 zones (median of 3) | {found['seconds']:.2f} | "
        f"{found['requests']:.0f} | {found['megabytes']:.0f} | {found['exact']:.0f} exact, "
        f"{found['transfer']:.0f} transfer, {found['megabytes_read']:.1f} MB read |"
    )
    print(
        f"| stock `JSONDatabase` of {stock['records']:.0f} records, local | {stock['seconds']:.1f} "
        f"| | {stock['megabytes']:.0f} more | {each * records / 60:.0f} min at {records} |"
    )


# A TCP proxy on loopback that lets every request wait, as a network does.

_CHUNK_BYTES = 256 * 1024


@contextmanager
def slow_proxy(url: str, *, seconds: float) -> Iterator[str]:
    """The proxy's URL. What a client sends waits `seconds` before it goes on to `url`; answers
    pass at once."""
    server = urlsplit(url)
    listener = socket.create_server(("127.0.0.1", 0), backlog=128)
    address = (str(server.hostname), int(server.port or 80))

    def accept() -> None:
        while True:
            try:
                client, _ = listener.accept()
            except OSError:
                return
            client.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            far = socket.create_connection(address)
            far.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            for pair in ((client, far, seconds), (far, client, 0.0)):
                threading.Thread(target=_forward, args=pair, daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{listener.getsockname()[1]}"
    finally:
        listener.close()


def _forward(source: socket.socket, destination: socket.socket, seconds: float) -> None:
    with suppress(OSError):
        while data := source.recv(_CHUNK_BYTES):
            time.sleep(seconds)
            destination.sendall(data)
    for end in (source, destination):
        with suppress(OSError):
            end.shutdown(socket.SHUT_RDWR)


if __name__ == "__main__":
    main()
