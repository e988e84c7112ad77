"""Writers, compactors, collectors and readers, interleaved at every call of the store, killed at
any of them: what was acknowledged is never lost, and what stood when a read began is read."""

import itertools
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from tests.protocol.turns import Process, TurnStore, in_turn
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate_cache.format.names import group_of, parse_segment
from tunegate_cache.format.records import ExactHit
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.maintenance.collection import collect
from tunegate_cache.maintenance.compaction import Compactor
from tunegate_cache.protocol import archive, target_requests, tuning_cache
from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import MaintainedStore, ObjectStore, StoreUnavailableError

MAIN = group_of("main", TARGET)
KEYS = TrustedKeys()
CRASH, LOSE, MAX_RUN = 29, 5, 12
"""One in so many choices kills the process, or loses an answer."""

Choices = st.lists(st.integers(0, 2**16), min_size=20, max_size=80)


@pytest.fixture(autouse=True)
def one_after_the_other(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (target_requests, tuning_cache):
        monkeypatch.setattr(module, "gather_with_deadline", in_turn)


class Team:
    """Everybody at work on one store. `choices` decide who goes next, who dies, what is lost."""

    def __init__(self, choices: list[int], scratch: Path, *, atomic: bool) -> None:
        self.store = MemoryStore()
        self.acknowledged: set[str] = set()
        self.gaps: list[str] = []
        self._choices = itertools.chain(choices, itertools.repeat(1))
        self._scratch, self._atomic = scratch, atomic
        self._milliseconds = itertools.count(1_795_000_000_000)
        self._seconds = itertools.count(1)
        self._numbers = itertools.count()

    def run(self) -> None:
        makers: list[Callable[[Process], None]] = [
            *[self._write] * 3,
            *[self._compact] * 2,
            self._collect,
            self._read,
        ]
        processes = [Process(maker.__name__, maker) for maker in makers]
        while alive := [process for process in processes if not process.is_over]:
            choice = next(self._choices)
            process = alive[choice % len(alive)]
            # Long runs beside short ones: what is dangerous is a process that stands still while
            # others finish.
            for _ in range(1 + choice // 16 % MAX_RUN):
                if not process.is_over:
                    process.step(crash=choice % CRASH == 0)
                    self._check_durability()
        for process in processes:
            if process.failure is not None:
                raise process.failure

    def cache(self, store: ObjectStore) -> TuningCache:
        return TuningCache(
            store,
            zones=Zones("main", ("main",)),
            mode="rw",
            write_ahead=WriteAhead(self._scratch / str(next(self._numbers))),
            monotonic=lambda: 0.0,
            milliseconds=lambda: next(self._milliseconds),
        )

    def visible(self, store: ObjectStore, workloads: set[str]) -> set[str]:
        wanted = [(make_key(workload), make_shape()) for workload in sorted(workloads)]
        found = self.cache(store).lookup(wanted)
        return {w for w in workloads if isinstance(found[make_key(w)], ExactHit)}

    def compact(self, store: MaintainedStore) -> None:
        compactor = Compactor(
            store, MAIN, keys=KEYS, signer=None, seconds=lambda: next(self._seconds), at_once=1
        )
        compactor.run()

    def turns(self, process: Process) -> TurnStore:
        return TurnStore(
            self.store, process, atomic=self._atomic, loses=lambda: next(self._choices) % LOSE == 0
        )

    def _write(self, process: Process) -> None:
        cache = self.cache(self.turns(process))
        for _ in range(2):
            workload = f"w{next(self._numbers)}"
            if cache.publish([make_record(workload)]):
                self.acknowledged.add(workload)

    def _compact(self, process: Process) -> None:
        for _ in range(2):
            try:
                self.compact(self.turns(process))
            except StoreUnavailableError:
                continue

    def _collect(self, process: Process) -> None:
        for _ in range(3):
            store = self.turns(process)
            collect(store, MAIN, keys=KEYS, now=next(self._seconds), grace_seconds=0)

    def _read(self, process: Process) -> None:
        for _ in range(3):
            before = set(self.acknowledged)
            missing = before - self.visible(self.turns(process), before)
            self.gaps.extend(sorted(missing))

    def _check_durability(self) -> None:
        """Every acknowledged record stands in a segment or in an archive."""
        standing = {s.file for s in map(parse_segment, self.store.names("")) if s}
        for name in self.store.names(f"{MAIN.prefix}cold/"):
            standing |= archive.files(self.store, name)
        assert len(standing) >= len(self.acknowledged)


@pytest.fixture
def scratch() -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder)


_SETTINGS = settings(
    max_examples=150,
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture, HealthCheck.too_slow],
)


@_SETTINGS
@given(choices=Choices)
@pytest.mark.parametrize("atomic", [True, False])
def test_nothing_acknowledged_is_lost_or_missed(
    scratch: Path, choices: list[int], *, atomic: bool
) -> None:
    """A reader may miss something where conditions do not work; the next compaction heals it."""
    team = Team(choices, scratch, atomic=atomic)
    team.run()
    assert not (atomic and team.gaps)
    team.compact(team.store)
    assert team.visible(team.store, team.acknowledged) == team.acknowledged


def test_a_head_that_overwrites_a_later_one_loses_nothing(scratch: Path) -> None:
    """The worst case of broken conditions: one compaction stands still between its check and its
    write; meanwhile there is a new record, another compaction, and a collection."""
    team = Team([1], scratch, atomic=False)

    def publish(workload: str) -> None:
        assert team.cache(team.store).publish([make_record(workload)])
        team.acknowledged.add(workload)

    publish("early")
    slow = Process("slow", lambda process: team.compact(team.turns(process)))
    while not any("/idx/" in name for name in team.store.names("")):
        slow.step()
    slow.step()
    publish("late")
    team.compact(team.store)
    assert collect(team.store, MAIN, keys=KEYS, now=100).segments == 2
    while not slow.is_over:
        slow.step()
    assert team.visible(team.store, team.acknowledged) == {"early"}
    team.compact(team.store)
    assert team.visible(team.store, team.acknowledged) == {"early", "late"}


def test_a_collector_that_trusts_an_empty_archive_is_caught(scratch: Path) -> None:
    """The checks can fail: here an acknowledged segment is deleted that no archive holds."""
    team = Team([1, 2, 3, 4, 5, 6, 8, 9] * 30, scratch, atomic=True)
    assert team.cache(team.store).publish([make_record("lost")])
    team.acknowledged.add("lost")
    for name in team.store.names(f"{MAIN.prefix}seg/"):
        team.store.delete(name)
    with pytest.raises(AssertionError):
        team.run()
