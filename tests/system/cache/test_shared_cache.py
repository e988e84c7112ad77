"""The configured cache, over a directory and over a bucket of a real server."""

from pathlib import Path

import pytest
from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey

from tests.support.git_repository import new_repository
from tests.support.servers.moto_server import BUCKET, free_port
from tests.support.tuning_records import make_key, make_record, make_shape
from tunegate.config import CacheConfig
from tunegate.errors import ConfigError
from tunegate.system.cache.shared_cache import VARIABLE, SharedCache, signing_key
from tunegate.system.cache.snapshot_pins import PINS_FILE, Pin, pins_at, read_pins, write_pins
from tunegate.system.git.repository import GitRepository
from tunegate_cache.format.names import Group
from tunegate_cache.format.records import ExactHit, Lookup, Miss


def cache_of(config: CacheConfig, tmp_path: Path, machine: str = "one") -> SharedCache:
    return SharedCache(config, state=tmp_path / machine, root=tmp_path)


def answer(cache: SharedCache) -> Lookup:
    return cache.lookup([(make_key(), make_shape())])[make_key()]


@pytest.mark.parametrize("url", ["cache", "./cache", "memory:"])
def test_a_relative_directory_lies_under_the_repository(tmp_path: Path, url: str) -> None:
    assert cache_of(CacheConfig(url=url), tmp_path).publish([make_record()])
    assert (tmp_path / "cache" / "ms1").is_dir() == (url != "memory:")


def test_the_default_lies_in_the_home_directory(tmp_path: Path) -> None:
    assert cache_of(CacheConfig(), tmp_path).publish([make_record()])
    assert (Path.home() / ".cache" / "tunegate" / "ms1").is_dir()


def test_what_one_machine_learns_in_a_bucket_another_knows(
    tmp_path: Path, endpoint: str, credentials: None
) -> None:
    config = CacheConfig(url=f"s3://{BUCKET}/team", endpoint_url=endpoint, region="us-east-1")
    assert cache_of(config, tmp_path).publish([make_record()])
    # The server of a busy machine may take longer than one look-up waits.
    answers = (
        (other, answer(other))
        for other in (cache_of(config, tmp_path, name) for name in ("second", "third", "fourth"))
    )
    other, hit = next(each for each in answers if each[1] != Miss("store-unavailable"))
    assert hit == ExactHit((make_record(),))
    used = other.use()
    assert (used.location, used.zone, used.mode) == (f"s3://{BUCKET}/team", "main", "rw")
    assert (used.exact, used.requests) == (1, 3)  # two zones listed, a segment
    assert used.bytes_read > 0
    assert used.seconds > 0
    assert used.usd is None  # not Amazon's


def test_a_server_that_is_gone_is_a_miss_and_a_note_and_what_was_learned_waits(
    tmp_path: Path, endpoint: str, credentials: None
) -> None:
    gone = f"http://127.0.0.1:{free_port()}"
    config = CacheConfig(url=f"s3://{BUCKET}/gone", endpoint_url=gone, region="us-east-1")
    cache = cache_of(config, tmp_path)
    assert answer(cache) == Miss("store-unavailable")
    assert not cache.publish([make_record()])
    assert cache.use().misses == {"store-unavailable": 1}
    assert any("EndpointConnectionError" in note for note in cache.use().notes)
    assert answer(cache_of(config, tmp_path)) == ExactHit((make_record(),))


def test_refused_records_are_named_in_the_notes(tmp_path: Path) -> None:
    config = CacheConfig(url="cache")
    cache_of(config, tmp_path).publish([make_record(run_nanoseconds=(0,))])
    cache = cache_of(config, tmp_path)
    assert answer(cache) == Miss("rejected")
    assert cache.use().notes == ("cache: 1 record was refused (impossible time)",)


@pytest.mark.parametrize("mode", ["off", "ro"])
def test_a_cache_that_may_not_be_written_is_not(tmp_path: Path, mode: str) -> None:
    config = CacheConfig(url="cache", mode=mode)  # type: ignore[arg-type] # both are its modes
    assert not cache_of(config, tmp_path).publish([make_record()])
    assert not (tmp_path / "cache").exists()


@pytest.mark.parametrize(
    ("config", "message"),
    [
        (CacheConfig(url="ftp://x/y"), r'^cache\.url: "ftp://x/y" is not a cache address: no '),
        (CacheConfig(url="s3://"), r'^cache\.url: "s3://" is not a cache address'),
        (CacheConfig(zone="../main"), r'^cache\.zone: zone "\.\./main" must be words'),
        (CacheConfig(read_zones=("a b",)), r'^cache\.read-zones: zone "a b" must be words'),
    ],
)
def test_wrong_settings_say_what_to_do(tmp_path: Path, config: CacheConfig, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        cache_of(config, tmp_path)


def test_requests_to_amazon_have_a_price(tmp_path: Path) -> None:
    assert cache_of(CacheConfig(url="s3://bucket/x"), tmp_path).use().usd == 0
    assert cache_of(CacheConfig(url="cache"), tmp_path).use().usd is None


def test_the_zone_that_a_run_writes_is_believed_where_it_may_be_read(tmp_path: Path) -> None:
    wanted, hit = [(make_key(), make_shape())], ExactHit((make_record(),))
    for zone, read, is_believed in (
        ("main", ("main",), True),
        ("pr/o/x/1", ("main",), False),
        ("team/a", ("main", "team/a"), True),
    ):
        config = CacheConfig(url=zone.replace("/", "-"), zone=zone, read_zones=read)
        assert cache_of(config, tmp_path).publish([make_record()])
        cache = cache_of(config, tmp_path)
        assert (answer(cache) == hit) == is_believed
        assert (cache.claims(wanted) == {make_key(): hit}) != is_believed


@pytest.mark.parametrize("text", [None, "", " \n"])
def test_without_a_key_nothing_is_signed(monkeypatch: pytest.MonkeyPatch, text: str | None) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    if text is not None:
        monkeypatch.setenv(VARIABLE, text)
    assert signing_key() is None


def test_the_key_of_the_environment_signs(monkeypatch: pytest.MonkeyPatch) -> None:
    key = Ed25519PrivateKey.from_private_bytes(b"\x01" * 32)
    pem = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    monkeypatch.setenv(VARIABLE, pem.decode())
    signer = signing_key()
    assert signer is not None
    assert signer.sign("a", "d") == signer.sign("a", "d")


def test_what_is_no_key_is_refused_and_never_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(VARIABLE, "hunter2")
    with pytest.raises(ConfigError, match=VARIABLE) as raised:
        signing_key()
    assert "hunter2" not in str(raised.value)


PIN = Pin(zone="main", target="t", version=1, index="digest")
PINNED = {Group("main", "t"): "digest"}


def test_pins_are_read_as_they_were_written_and_as_a_revision_has_them(tmp_path: Path) -> None:
    made = new_repository(tmp_path / "r")
    empty = made.commit({"file": b""})
    write_pins(made.path, (PIN,))
    pinned, repository = made.commit({}), GitRepository(made.path)
    assert read_pins(made.path) == pins_at(repository, pinned) == PINNED
    assert pins_at(repository, empty) == {}
    assert pins_at(repository, made.commit({PINS_FILE: b"{"})) == {}


def test_a_link_in_the_place_of_the_file_is_refused(tmp_path: Path) -> None:
    write_pins(tmp_path, (PIN,))
    (tmp_path / PINS_FILE).rename(tmp_path / "elsewhere")
    (tmp_path / PINS_FILE).symlink_to("elsewhere")
    with pytest.raises(ConfigError, match=PINS_FILE):
        read_pins(tmp_path)
    (tmp_path / "elsewhere").write_text("other")
    write_pins(tmp_path, (PIN,))
    assert (tmp_path / "elsewhere").read_text() == "other"
