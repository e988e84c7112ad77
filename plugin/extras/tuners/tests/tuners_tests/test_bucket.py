"""One tuner puts, another finds: in trusted zones, unaltered, signed where that is asked."""

from __future__ import annotations

import hashlib
import logging
from collections.abc import Callable, Sequence

import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tunegate_cache.format.signing import Signer, TrustedKeys
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import StoreUnavailableError
from tunegate_tuners.bucket import MAX_CONTENT_BYTES, Bucket
from tunegate_tuners.lent_objects import lent_objects, name_part

NOW = 1_800_000_000.0


@pytest.fixture(autouse=True)
def _warnings_are_logged(caplog: pytest.LogCaptureFixture) -> None:
    """Libraries that another test has loaded may have raised the level of all logs."""
    caplog.set_level(logging.WARNING, logger="tunegate.tuners")


class Clock:
    """Seconds that pass when a test says so."""

    def __init__(self) -> None:
        self.now = NOW

    def __call__(self) -> float:
        return self.now


def _bucket(
    store: MemoryStore,
    *,
    zone: str | None = "main",
    read_zones: Sequence[str] = ("main",),
    keys: TrustedKeys | None = None,
    signer: Signer | None = None,
    seconds: Callable[[], float] = lambda: NOW,
) -> Bucket:
    return Bucket(
        store,
        "helion",
        zone=zone,
        read_zones=read_zones,
        trust=Trust(keys=keys or TrustedKeys(), signer=signer),
        seconds=seconds,
    )


def _overwritten(store: MemoryStore, body: bytes) -> None:
    (name,) = store.names("")
    store.delete(name)
    store.write(name, body)


def test_the_newest_content_of_a_key_is_found_by_others() -> None:
    store, clock = MemoryStore(), Clock()
    writer = _bucket(store, seconds=clock)
    writer.put("k", "f", b"old")
    clock.now += 1
    writer.put("k", "f", b"new")
    clock.now += 1
    writer.put("other", "f", b"x")
    reader = _bucket(store, zone=None, seconds=clock)
    assert reader.get("k", ["f", "g"]) == {"f": b"new"}
    assert reader.recent(1) == {("other", "f"): b"x"}
    assert list(reader.recent(10)) == [("other", "f"), ("k", "f")]


def test_keys_that_no_name_can_have_do_not_meet() -> None:
    store = MemoryStore()
    bucket = _bucket(store)
    keys = ["a/b", "../a", "", "sha256-" + hashlib.sha256(b"a/b").hexdigest(), "ä", "a" * 101]
    for key in keys:
        bucket.put(key, "f", key.encode())
    assert [bucket.get(key, ["f"]) for key in keys] == [{"f": key.encode()} for key in keys]
    assert len(set(map(name_part, keys))) == len(keys)
    assert len(list(lent_objects(store.names("")))) == len(keys)


def test_only_trusted_zones_count() -> None:
    store = MemoryStore()
    _bucket(store, zone="pr/a/b/7").put("k", "f", b"theirs")
    assert _bucket(store).get("k", ["f"]) == {}
    assert _bucket(store, read_zones=("main", "pr/a/b/7")).get("k", ["f"]) == {"f": b"theirs"}


def test_altered_content_is_a_miss_and_the_one_before_counts(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store, clock = MemoryStore(), Clock()
    bucket = _bucket(store, seconds=clock)
    bucket.put("k", "f", b"altered later")
    _overwritten(store, b"altered, too!")
    assert bucket.get("k", ["f"]) == {}
    assert "is not what its name says" in caplog.text
    clock.now -= 60
    bucket.put("k", "f", b"earlier")
    clock.now += 60
    assert bucket.get("k", ["f"]) == {"f": b"earlier"}


def test_a_zone_with_keys_takes_only_what_they_have_signed() -> None:
    store, clock = MemoryStore(), Clock()
    ours, theirs = Signer(Ed25519PrivateKey.generate()), Signer(Ed25519PrivateKey.generate())
    keys = TrustedKeys({"main": (ours.public,)})
    reader = _bucket(store, keys=keys, seconds=clock)
    for signer in (None, theirs):
        _bucket(store, signer=signer, seconds=clock).put("k", "f", b"theirs")
        assert reader.get("k", ["f"]) == {}
        clock.now += 1
    _bucket(store, signer=ours, seconds=clock).put("k", "f", b"ours")
    assert reader.get("k", ["f"]) == {"f": b"ours"}


def test_a_signature_is_worth_nothing_under_another_key() -> None:
    store = MemoryStore()
    signer = Signer(Ed25519PrivateKey.generate())
    keys = TrustedKeys({"main": (signer.public,)})
    _bucket(store, signer=signer).put("k", "f", b"ours")
    (name,) = store.names("")
    store.write(name.replace("/k/", "/other/"), store.read(name))
    assert _bucket(store, keys=keys).get("other", ["f"]) == {}


def test_content_from_the_future_does_not_stand_for_ever() -> None:
    store, clock = MemoryStore(), Clock()
    clock.now += 3600
    _bucket(store, seconds=clock).put("k", "f", b"wrong clock")
    bucket = _bucket(store)
    bucket.put("k", "f", b"now")
    assert bucket.get("k", ["f"]) == {"f": b"now"}


def test_large_content_is_not_stored(caplog: pytest.LogCaptureFixture) -> None:
    store = MemoryStore()
    _bucket(store).put("k", "f", bytes(MAX_CONTENT_BYTES + 1))
    assert not store.names("")
    assert "larger than 32 MiB" in caplog.text


class BrokenStore(MemoryStore):
    """Fails every request, and counts them."""

    def __init__(self) -> None:
        super().__init__()
        self.requests = 0

    def names(self, prefix: str) -> Sequence[str]:
        self.requests += 1
        raise StoreUnavailableError("the store is away")

    def write(self, name: str, body: bytes) -> None:
        self.requests += 1
        raise StoreUnavailableError("the store is away")


def test_an_outage_is_a_miss_with_one_line_and_few_requests(
    caplog: pytest.LogCaptureFixture,
) -> None:
    store = BrokenStore()
    bucket = _bucket(store)
    for _ in range(50):
        bucket.put("k", "f", b"x")
        assert bucket.get("k", ["f"]) == {}
        assert bucket.recent(5) == {}
    assert store.requests < 30
    assert caplog.text.count("the store is away") == 1
