"""Records of the cache, and nothing about where they are stored.

A record holds decisions only: range-checked integers that the consumer replays on its own
module under its own search-space template. It carries no instruction, no code, no binary.
"""

from typing import Literal

import msgspec

Decision = tuple[int, tuple[int, ...]]
"""(index of a sampling instruction in the template, the integers it decided)."""

CONFIRMED_REPEATS = 5
"""The repeats from which a candidate counts as confirmed. A search measures each candidate with
fewer, and repeats possible winners."""
CONFIRMED_MS = 1000.0
"""The milliseconds from which a single run is its own average."""
WINNERS_CURSE = 1.1
"""The winner's-curse factor: how much too fast the best of many quick measurements may have
seemed."""

MissReason = Literal["absent", "corrupt", "rejected", "store-unavailable", "off"]
RecordStatus = Literal["ok", "timeout", "compile", "runtime", "wrong", "constraint"]


class WorkloadKey(msgspec.Struct, frozen=True, order=True):
    """Identity of one tuning task: equal keys may share tuning records.

    `workload` is the 64-digit name-free digest of the task's function, `target` the 64-digit
    digest of the canonical target.
    """

    workload: str
    target: str


class WorkloadShape(msgspec.Struct, frozen=True):
    """The shape for transfer: the digest with extents erased, and the extents in walk order."""

    skeleton: str
    extents: tuple[int, ...]


class DeviceFingerprint(msgspec.Struct, frozen=True, kw_only=True):
    """The hardware a time was taken on. Orders results; never decides legality."""

    name: str
    kind: Literal["cpu", "cuda"]
    units: int
    memory_bytes: int
    driver: str = ""
    uuid: str = ""
    clocks: Literal["locked", "floating", "unknown"] = "unknown"


class Toolchain(msgspec.Struct, frozen=True, kw_only=True):
    """The versions that decide how fast a schedule runs, and what it has to beat: `schedules` is
    the revision of the default schedules. The driver is in the `DeviceFingerprint`."""

    tvm: str
    ffi: str
    cuda: str = ""
    schedules: str = ""


class Provenance(msgspec.Struct, frozen=True, kw_only=True):
    """The origin of a record: repository, ref, commit and CI run; empty outside CI."""

    repository: str = ""
    ref: str = ""
    commit: str = ""
    run: str = ""


class TuningRecord(msgspec.Struct, frozen=True, kw_only=True):
    """One measured candidate. `run_nanoseconds` is empty unless `status` is `ok`."""

    version: int = msgspec.field(default=1, name="v")
    key: WorkloadKey
    shape: WorkloadShape
    template: str
    decisions: tuple[Decision, ...]
    run_nanoseconds: tuple[int, ...]
    status: RecordStatus
    device: DeviceFingerprint
    toolchain: Toolchain
    measured_at: int
    source: Provenance = Provenance()

    @property
    def median_ms(self) -> float:
        """The median run time in milliseconds, infinite for a failed candidate."""
        times = sorted(self.run_nanoseconds)
        if self.status != "ok" or not times:
            return float("inf")
        middle = len(times) // 2
        if len(times) % 2:
            return times[middle] / 1e6
        return (times[middle - 1] + times[middle]) / 2e6

    @property
    def is_confirmed(self) -> bool:
        """True if a second, longer measurement confirmed it."""
        times = self.run_nanoseconds
        return len(times) >= CONFIRMED_REPEATS or (len(times) > 0 and self.median_ms > CONFIRMED_MS)

    def is_timed_by(self, toolchain: Toolchain, driver: str) -> bool:
        """Returns whether this toolchain took the times, under this driver. Otherwise the record is
        a candidate there, and no answer."""
        return self.toolchain == toolchain and self.device.driver == driver

    @property
    def recency(self) -> tuple[int, bool, int]:
        """The rank of a measurement among those of its candidate; the highest counts. Later ones
        rank higher; within one second a failure does, else the longest, which confirms."""
        return self.measured_at, self.status != "ok", len(self.run_nanoseconds)

    @property
    def shrunk_ms(self) -> float:
        """The milliseconds that candidates are ranked by. The fastest of many quick measurements is
        biased (the winner's curse): it ranks above a confirmed one only if it is faster by more
        than luck."""
        return self.median_ms if self.is_confirmed else WINNERS_CURSE * self.median_ms


class ExactHit(msgspec.Struct, frozen=True, tag="exact"):
    """Records of this very workload on this target, best first.

    Here and below, `failures` are candidates of this workload that last failed to build, run or
    compute correctly, latest first: they need not be tried again.
    """

    records: tuple[TuningRecord, ...]
    failures: tuple[TuningRecord, ...] = ()


class TransferHit(msgspec.Struct, frozen=True, tag="transfer"):
    """Records of the nearest shapes of the same skeleton and target, nearest first.

    `distance` is the sum over the extents of |log2 ours - log2 theirs| of the nearest source.
    """

    source_workloads: tuple[WorkloadKey, ...]
    distance: float
    records: tuple[TuningRecord, ...]
    failures: tuple[TuningRecord, ...] = ()


class Miss(msgspec.Struct, frozen=True, tag="miss"):
    """A miss; `reason` is one of the counted reasons of the cache statistics."""

    reason: MissReason
    failures: tuple[TuningRecord, ...] = ()


Lookup = ExactHit | TransferHit | Miss


# A record as it is stored in a segment or a pack.


class StoredRecord(msgspec.Struct, frozen=True):
    """`text` is the line as written: later versions may say more than this one knows. `signer` is
    the id of the key that signed its segment, or empty."""

    record: TuningRecord
    text: bytes
    signer: str = ""
