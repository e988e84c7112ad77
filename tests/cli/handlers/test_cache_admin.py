import gzip
import json
import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from cryptography.hazmat.primitives.asymmetric.ed25519 import Ed25519PrivateKey
from cryptography.hazmat.primitives.serialization import Encoding, NoEncryption, PrivateFormat

from tests.cache.format.test_segment import OURS
from tests.cli.handlers.cache_shell import Shell
from tests.support.compacted_place import MAIN, NOBODY
from tests.support.git_repository import Checkout
from tests.support.history import COST, entry
from tests.support.tuning_caches import cache_over
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tests.support.tuning_tasks import make_plan, make_resolution, make_task
from tunegate.artifacts import artifact_io
from tunegate.cli.handlers.cache_admin import answering, open_cache_admin
from tunegate.cli.handlers.cache_stats import target_names
from tunegate.cli.handlers.cache_upkeep import repair, revoke_group
from tunegate.cli.handlers.table import show_revalidation
from tunegate.config import CacheConfig
from tunegate.errors import ConfigError, EnvironmentUnfitError
from tunegate.settings import Overrides, Settings
from tunegate.system.cache.history_log import write_history
from tunegate.system.cache.shared_cache import VARIABLE, SharedCache, undelivered_store
from tunegate.system.output.directory import opened_output
from tunegate.tune.revalidation import Revalidated
from tunegate_cache.format.head import decode_head
from tunegate_cache.format.names import Group, group_of
from tunegate_cache.format.records import Miss, WorkloadKey
from tunegate_cache.format.revocation import Revocation
from tunegate_cache.format.target_key import target_key
from tunegate_cache.maintenance.consistency import flaws
from tunegate_cache.maintenance.summary import GroupSummary
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.memory import MemoryStore
from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    PointerMovedError,
    StoreTimedOutError,
    StoreUnavailableError,
)


@pytest.fixture(autouse=True)
def unsigned(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.delenv(VARIABLE, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))


def settings(root: Path, *, url: str | None = None, zone: str | None = None) -> Settings:
    return Settings(repository=root, overrides=Overrides({"cache.url": url, "cache.zone": zone}))


def test_a_directory_without_a_configuration_has_the_default_cache(tmp_path: Path) -> None:
    admin = open_cache_admin(settings(tmp_path))
    assert (admin.config.zone, admin.root, admin.signer) == ("main", tmp_path, None)
    assert admin.config.url == CacheConfig().url


def test_the_cache_is_the_one_that_the_configuration_names(tmp_path: Path) -> None:
    text = f"models:\n  - path: m.onnx\ncache:\n  url: {tmp_path / 'shared'}\n"
    (tmp_path / "tunegate.yaml").write_text(text)
    admin = open_cache_admin(settings(tmp_path))
    admin.store.write(f"{MAIN.prefix}idx/{'a' * 64}.idx", b"x")
    assert (tmp_path / "shared").is_dir()
    assert admin.groups(None) == admin.groups("main") == (MAIN,)
    assert admin.groups("team") == ()


def test_an_argument_counts_more_than_the_file(tmp_path: Path) -> None:
    admin = open_cache_admin(settings(tmp_path, url=str(tmp_path / "other"), zone="dev/me"))
    assert (admin.config.url, admin.config.zone) == (str(tmp_path / "other"), "dev/me")
    with pytest.raises(ConfigError, match=r'zone "\.\./me" must be words of letters'):
        open_cache_admin(settings(tmp_path, zone="../me"))
    for url, problem in (("", "it is empty"), ("$HOME/x", "variables are not replaced")):
        with pytest.raises(ConfigError, match=problem):
            open_cache_admin(settings(tmp_path, url=url))


def test_the_password_of_an_address_is_not_shown(tmp_path: Path) -> None:
    """A store that is installed, such as one in Redis, may have one in its address."""
    admin = open_cache_admin(settings(tmp_path))
    config = CacheConfig(url="redis://me:password@host/0")
    assert msgspec.structs.replace(admin, config=config).location == "redis://***@host/0"


def test_a_trusted_key_that_is_none_is_a_mistake_in_the_configuration(tmp_path: Path) -> None:
    text = "models:\n  - path: m.onnx\ncache:\n  trusted-keys: {main: [abc]}\n"
    (tmp_path / "tunegate.yaml").write_text(text)
    with pytest.raises(ConfigError, match=r"cache\.trusted-keys"):
        open_cache_admin(settings(tmp_path))


def test_a_cache_that_does_not_answer_ends_its_command_with_what_to_run() -> None:
    with (
        pytest.raises(EnvironmentUnfitError, match="tunegate cache doctor") as raised,
        answering(CacheConfig(url="s3://bucket")),
    ):
        raise StoreUnavailableError("no route")
    assert "s3://bucket does not answer (no route)" in str(raised.value)


def test_a_cache_that_lets_one_wait_is_asked_twice(tmp_path: Path) -> None:
    admin = open_cache_admin(settings(tmp_path, url=str(tmp_path / "cache")))
    for zone in "abcd":
        admin.store.write(f"{group_of(zone, TARGET).prefix}idx/{'a' * 64}.idx", b"x")

    def work(group: Group) -> str:
        if group.zone != "a":
            raise StoreTimedOutError("late")
        return group.zone

    done, unread = admin.of_each_group(None, work)
    assert (done, unread[:2]) == (("a",), ("b: left out, late", "c: left out, late"))
    assert unread[2].startswith("d: left out, not asked")


class Closed(MemoryStore):
    """A store with a zone that cannot be listed, or whose user may list the configured zones
    alone."""

    is_partial = False

    def names(self, prefix: str) -> Sequence[str]:
        if not "ms1/z/pr/".startswith(prefix):
            return super().names(prefix)
        listed = super().names(prefix) if self.is_partial else ()
        raise StoreUnavailableError("/x: Permission denied", listed=listed)


def test_a_zone_that_its_owner_closed_stops_no_work_on_the_others(tmp_path: Path) -> None:
    store = Closed()
    admin = msgspec.structs.replace(open_cache_admin(settings(tmp_path)), store=store)
    team = group_of("team", TARGET)
    for group in (MAIN, team):
        admin.store.write(f"{group.prefix}idx/{'a' * 64}.idx", b"x")
    done, unread = admin.of_each_group(None, lambda group: group)
    assert (done, unread) == ((MAIN,), ("zones but main, rel: left out, /x: Permission denied",))
    store.is_partial = True
    done, unread = admin.of_each_group(None, lambda group: group)
    assert (done, unread) == ((MAIN, team), ("left out: /x: Permission denied",))
    with pytest.raises(StoreUnavailableError, match="Permission"):
        admin.of_each_group("pr", lambda group: group)


@pytest.mark.parametrize("line", ["compact", "revoke --of-repository other/x", "fsck --repair"])
def test_a_signed_zone_without_a_key_stops_no_work_on_the_others(shell: Shell, line: str) -> None:
    main, team = (Path(shell.url) / group_of(zone, TARGET).prefix for zone in ("main", "team"))
    for folder in (main, team):
        shell.publish("a", zone=folder.parents[1].name)
        (folder / "seg" / f"{1:013d}-{'0' * 8}-{'0' * 64}.zst").write_bytes(b"garbage")
    shell.configure(f"  trusted-keys:\n    main: ['{OURS.public}']\n")
    said = shell.shown(*line.split(), code=4)
    assert f"main: left out, {VARIABLE}: zone main" in said
    assert ((main / "HEAD").exists(), (team / "HEAD").exists()) == (False, True)


class Overtaking(MemoryStore):
    """A store in which another compaction is faster, so many times."""

    times = 0

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        if expected is not None and self.times:
            self.times -= 1
            raise PointerMovedError(name)
        super().move_pointer(name, body, expected)


@pytest.mark.parametrize(("times", "problem"), [(3, ""), (99, "main: nothing was revoked")])
def test_a_revocation_counts_or_says_why_not(tmp_path: Path, times: int, problem: str) -> None:
    store = Overtaking()
    admin = msgspec.structs.replace(open_cache_admin(settings(tmp_path)), store=store)
    cache_over(store, tmp_path).publish([make_record()])
    admin.compactor(MAIN).run()
    store.times = times
    _, found = revoke_group(admin, MAIN, Revocation(since=1))
    assert found.startswith(problem)
    assert bool(found) == bool(problem)


def test_segments_are_gathered_once(shell: Shell) -> None:
    shell.publish("a", "b", "c")
    (group,) = shell.cache("compact")["groups"]
    assert (group["status"], group["segments"], group["records"]) == ("compacted", 3, 3)
    assert shell.cache("compact")["groups"][0]["status"] == "nothing new"
    assert "nothing" in shell.shown("compact")


def test_a_zone_that_is_named_is_the_only_one_compacted(shell: Shell) -> None:
    shell.publish("a")
    shell.publish("a", zone="dev/me")
    groups = shell.cache("compact", "--zone", "dev/me")["groups"]
    assert [group["group"]["zone"] for group in groups] == ["dev/me"]


SNAPSHOT = {"version": 1, "index": "0" * 64, "packs": [], "at": 1}
HEAD = {"version": 1, "parent": "", "snapshot": SNAPSHOT, "archives": [], "covers": []}


@pytest.mark.parametrize(
    ("hostile", "codes"),
    [
        (None, (4, 4, 4, 0)),  # a segment that is too large to be read
        ({"version": 2**64 - 1}, (0, 0, 0, 0)),
        ({"snapshot": {**SNAPSHOT, "at": 2**70}}, (0, 0, 0, 0)),
        ({"archives": ["../../../../../main/g/x"]}, (0, 0, 0, 0)),
        ({"snapshot": {**SNAPSHOT, "index": "../../x"}}, (0, 0, 0, 0)),
    ],
)
def test_the_zone_of_a_pull_request_stops_no_work_on_the_others(
    shell: Shell, hostile: dict[str, object] | None, codes: tuple[int, ...]
) -> None:
    for zone in ("main", "pr/o/r/7", "rel"):
        shell.publish("a", zone=zone)
    theirs, rel = (Path(shell.url) / group_of(z, TARGET).prefix for z in ("pr/o/r/7", "rel"))
    if hostile is None:
        os.truncate(next((theirs / "seg").iterdir()), MAX_OBJECT_BYTES + 1)
    else:
        (theirs / "HEAD").write_text(json.dumps({"head": {**HEAD, **hostile}}))
    stats, revoked, compacted, collected = codes
    zones = [each["zone"] for each in shell.cache("stats", code=stats)["contents"]]
    assert {"main", "rel"} <= set(zones)
    shell.cache("revoke", "--of-repository", "o/r", code=revoked)
    assert (rel / "HEAD").exists()
    shell.publish("b", zone="rel")
    done = shell.cache("compact", code=compacted)["groups"]
    assert [each["segments"] for each in done if each["group"]["zone"] == "rel"] == [1]
    assert len(shell.cache("gc", code=collected)["groups"]) == 3
    assert bool(shell.cache("fsck", code=compacted)["unread"]) == (hostile is None)
    planned(shell, make_key("a"))
    explained = shell.cache("why-miss", "conv1")
    assert explained["now"]["differs"] == "nothing"
    assert bool(explained["unread"]) == (hostile is None)


def test_a_copy_in_a_directory_is_a_cache_and_comes_back(shell: Shell, tmp_path: Path) -> None:
    shell.publish("a")
    shell.cache("compact")
    shell.publish("b")
    copy = tmp_path / "copy"
    assert shell.cache("pull", str(copy))["copied"]["problems"] == []
    original = shell.url
    shell.url = str(copy)
    shell.configure("")
    assert shell.cache("stats")["contents"][0]["records"] == 2
    shell.publish("c")
    shell.url = original
    shell.configure("")
    assert shell.cache("push", str(copy))["copied"]["records"] == 3
    assert shell.cache("stats")["contents"][0]["records"] == 3
    (tmp_path / "file").write_bytes(b"")
    assert "the copy cannot be used" in shell.shown("pull", str(tmp_path / "file"), code=4)
    for large in (*copy.rglob("*.arc"), copy / MAIN.head):
        os.truncate(large, MAX_OBJECT_BYTES + 1)
        problems = shell.cache("push", str(copy), code=4)["copied"]["problems"]
        assert "larger than" in problems[0]
    assert "the copy cannot be used" in shell.shown("pull", str(copy), code=4)
    assert "no such directory" in shell.shown("push", str(tmp_path / "none"), code=2)


def test_damage_is_found_and_repaired(shell: Shell) -> None:
    assert "no tuning results are there" in shell.shown("fsck")
    shell.publish("a", "b")
    shell.cache("compact")
    shell.cache("gc")
    assert shell.cache("fsck")["found"] == []
    store = FileStore(Path(shell.url))
    store.delete(next(name for name in store.names("") if "/idx/" in name))
    shell.publish("c")
    segment = next(name for name in store.names("") if "/seg/" in name)
    (Path(shell.url) / segment).write_bytes(b"garbage")
    kinds = [flaw["kind"] for flaw in shell.cache("fsck", code=4)["found"]]
    assert kinds == ["snapshot", "segment"]
    assert "--repair" in shell.shown("fsck", code=4)
    advice = shell.shown("doctor")
    assert "tunegate cache fsck says which" in advice
    assert "in order" not in advice
    assert "it is missing. Run tunegate cache fsck --repair" in shell.shown("pin", code=4)
    assert shell.cache("fsck", "--repair")["left"] == []
    assert "HEAD" not in shell.shown("pin")
    assert shell.cache("stats")["contents"][0]["records"] == 2
    (head,) = Path(shell.url).rglob("HEAD")
    head.write_bytes(b"garbage")
    assert shell.cache("gc", code=4)["groups"][0]["problems"]
    assert "HEAD cannot be read. Run tunegate cache fsck --repair" in shell.shown("pin", code=4)
    assert "tunegate cache fsck says which" in shell.shown("doctor")


@pytest.mark.parametrize("is_damaged", [False, True])
@pytest.mark.parametrize("line", ["compact", "revoke --run other", "fsck --repair", "gc", "pin"])
def test_what_a_lost_head_has_revoked_is_to_be_revoked_again(
    shell: Shell, line: str, is_damaged: bool
) -> None:
    shell.publish("a")
    shell.cache("revoke", "--run", "bad")
    (head,) = Path(shell.url).rglob("HEAD")
    head.write_bytes(b"garbage") if is_damaged else head.unlink()
    said = shell.shown(*line.split(), code=4 if line in {"gc", "pin"} else 0)
    assert ("HEAD cannot be read" if is_damaged else "HEAD is missing: no first") in said
    assert ("repeat revocations" in said) == (line not in {"gc", "pin"})


def test_doctor_finds_all_in_order_where_nothing_is_left_to_do(shell: Shell) -> None:
    shell.publish("a")
    assert "1. nothing: the cache is in use and in order" in shell.shown("doctor")
    shell.configure(f"  mode: ro\n  trusted-keys:\n    main: ['{OURS.public}']\n")
    advice = shell.shown("doctor")
    assert "none: signed ones count" in advice
    assert "in order" not in advice
    shell.configure("")
    store = undelivered_store(CacheConfig(url=shell.url), root=shell.root)
    (name,) = FileStore(Path(shell.url)).names("ms1/z/main/g/")
    store.write(name, FileStore(Path(shell.url)).read(name))
    advice = shell.shown("doctor")
    assert "tunegate cache push" in advice
    assert "in order" not in advice
    assert "1 object, 1 record" in shell.shown("push")
    assert "in order" in shell.shown("doctor")


def test_what_is_revoked_is_neither_counted_nor_explained_as_there(shell: Shell) -> None:
    shell.publish("a")
    shell.cache("revoke", "--since", "2023-11-14")
    shell.publish("b")
    assert shell.cache("stats")["contents"][0]["records"] == 0
    planned(shell, make_key("b"))
    assert shell.cache("why-miss", "conv1")["now"]["differs"] == "skeleton"


@pytest.mark.parametrize("is_foreign", [False, True])
@pytest.mark.parametrize(
    "line",
    [
        "cache compact",
        "cache revoke --of-repository other/x",
        "cache fsck --repair",
        "cache push",
        "cache promote --from-zone pr/o/r/1",
        "warm",
    ],
)
def test_what_no_reader_would_trust_is_not_written(
    shell: Shell, monkeypatch: pytest.MonkeyPatch, line: str, is_foreign: bool
) -> None:
    """Nothing is changed without a key of the zone, and a damaged segment is not deleted."""
    shell.publish("a")
    shell.configure(f"  trusted-keys:\n    main: ['{OURS.public}']\n")
    repository = Checkout(shell.root)
    repository.git("init", "-q", "--initial-branch=main")
    repository.commit({"a.onnx": b""})
    if is_foreign:
        private = Ed25519PrivateKey.from_private_bytes(b"\x02" * 32)
        pem = private.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, NoEncryption())
        monkeypatch.setenv(VARIABLE, pem.decode())
    store = FileStore(Path(shell.url))
    (segment,) = store.names("")
    (Path(shell.url) / segment).write_bytes(b"garbage")
    said = shell.typed(*line.split(), code=2)
    assert f"{VARIABLE}: zone main of cache.trusted-keys trusts signed content alone" in said
    assert store.names("") == [segment]
    assert "is no key of it" in shell.shown("doctor", code=4)


class Gzip(MemoryStore):
    """A store behind a gateway that compresses what it returns."""

    def read(self, name: str) -> bytes:
        return gzip.compress(super().read(name))


def test_a_repair_deletes_nothing_that_only_a_gateway_damages(tmp_path: Path) -> None:
    store = Gzip()
    admin = msgspec.structs.replace(open_cache_admin(settings(tmp_path)), store=store)
    cache_over(store, tmp_path).publish([make_record()])
    before = store.names("")
    found = tuple(flaws(store, MAIN, admin.keys))
    with pytest.raises(EnvironmentUnfitError, match="does not return what is written"):
        repair(admin, MAIN, found)
    assert [flaw.kind for flaw in found] == ["segment"]
    assert store.names("") == before


def test_what_a_compaction_holds_is_deleted_once_and_by_no_dry_run(shell: Shell) -> None:
    shell.publish("a", "b", "c")
    assert shell.cache("gc")["groups"][0]["segments"] == 0
    shell.cache("compact")
    would = shell.cache("gc", "--dry-run")
    assert (would["dry_run"], would["groups"][0]["segments"]) == (True, 3)
    assert "would be deleted" in shell.shown("gc", "--dry-run")
    assert shell.cache("gc")["groups"][0]["segments"] == 3
    assert shell.cache("gc")["groups"][0]["segments"] == 0


def test_a_pin_is_written_obeyed_and_removed(shell: Shell) -> None:
    assert "if the zone is empty, tunegate warm." in shell.shown("pin", code=2)
    shell.publish("a")
    shell.cache("compact")
    (pin,) = shell.cache("pin")["pins"]
    assert (pin["zone"], pin["version"]) == ("main", 1)
    shell.publish("b")
    config = CacheConfig(url=shell.url)
    cache = SharedCache(config, state=shell.root / "state", root=shell.root)
    found = cache.lookup([(make_key(name), make_shape()) for name in ("a", "b")])
    assert found[make_key("a")].__class__.__name__ == "ExactHit"
    assert found[make_key("b")].__class__.__name__ != "ExactHit"
    shell.cache("compact")
    said = " ".join(shell.shown("doctor").split())
    assert "in order" in said
    assert "1 with a later one: tunegate cache pin takes it" in said
    store = FileStore(Path(shell.url))
    store.delete(MAIN.content("idx", pin["index"]))  # as a month later
    lost = SharedCache(config, state=shell.root / "state", root=shell.root)
    assert lost.lookup([(make_key("a"), make_shape())]) == {make_key("a"): Miss("corrupt")}
    assert "(it is missing; run tunegate cache doctor)" in lost.use().notes[0]
    said = " ".join(shell.shown("doctor", code=4).split())
    assert f"{pin['index']}.idx: it is missing" in said
    assert "1. pin what is there now: run tunegate cache pin" in said
    assert shell.cache("pin", "--remove")["pins"] == []
    assert not (shell.root / "tunegate.lock").exists()


@pytest.mark.parametrize(
    ("rule", "is_lasting"),
    [
        (("--of-repository", "o/r"), False),
        (("--since", "2023-11-14"), False),
        (("--run", "1", "--since", "2023-11-14"), True),
        (("--of-repository", "o/r", "--until", "2100-01-01"), True),
        (("--run", "1"), True),
    ],
)
def test_a_rule_of_neither_a_key_nor_a_run_ends_now(
    shell: Shell, rule: tuple[str, ...], *, is_lasting: bool
) -> None:
    shell.publish("a")
    began = int(time.time())
    assert ("measured until now" in shell.shown("revoke", *rule)) != is_lasting
    (head,) = Path(shell.url).rglob("HEAD")
    (revocation,) = decode_head(head.read_bytes(), MAIN, NOBODY).revoked
    assert (began <= revocation.until <= time.time()) != is_lasting


def test_a_directory_keeps_every_promise_that_is_needed(shell: Shell) -> None:
    found = shell.cache("probe")
    assert found["location"] == shell.url
    needed = [finding for finding in found["findings"] if finding["needed"]]
    assert needed
    assert all(finding["ok"] for finding in needed)
    assert "yes" in shell.shown("probe")


def test_a_revoked_repository_is_served_no_more(shell: Shell) -> None:
    assert "no tuning results are in" in shell.shown("revoke", "--run", "1", code=2)
    shell.publish("a", "b")
    shell.cache("compact")
    assert "no record matches; any that comes later" in shell.shown("revoke", "--run", "1")
    day = ("--since", "2023-11-14", "--until", "2023-11-14")
    assert "hidden: 2 records" in shell.shown("revoke", *day)
    assert shell.cache("stats")["contents"][0]["records"] == 0
    assert "nothing new was revoked" in shell.shown("revoke", *day)
    late = shell.shown("revoke", "--since", "2023-11-15", "--until", "2023-11-14", code=2)
    assert "no record can match" in late
    (Path(shell.url) / MAIN.head).write_text('{"head": {"v": 2}}')
    assert "nothing was revoked" in shell.shown("revoke", "--run", "1", code=4)
    assert "HEAD is of a later version" in shell.shown("compact", code=4)
    assert "nothing to revoke is named" in shell.shown("revoke", code=2)
    assert "later than now" in shell.shown("revoke", "--since", "2100-01-01", code=2)
    assert "not a date" in shell.shown("revoke", "--since", "soon", code=2)


# Why a look-up missed, and what the cache holds.


def planned(
    shell: Shell, key: WorkloadKey, extents: tuple[int, ...] = (64, 64), attributes: str = ""
) -> None:
    """Writes a plan as if a run had looked this task up and missed."""
    shape = make_shape(extents=extents)
    task = msgspec.structs.replace(make_task("conv1"), key=key, shape=shape, attributes=attributes)
    plan = make_plan(make_resolution([task]))
    (shell.root / "out").mkdir(exist_ok=True)
    artifact_io.write(shell.root / "out" / "plan.json", plan)


@pytest.mark.parametrize("compacted", [False, True])
def test_the_first_key_that_differs_is_named(shell: Shell, compacted: bool) -> None:
    def differs(key: WorkloadKey, extents: tuple[int, ...] = (64, 64)) -> dict[str, Any]:
        planned(shell, key, extents)
        if compacted:
            shell.cache("compact")
        now: dict[str, Any] = shell.cache("why-miss", "conv1")["now"]
        return now

    assert differs(make_key("new"))["differs"] == "skeleton"
    shell.publish("known")
    assert differs(make_key("known"))["differs"] == "nothing"
    assert differs(make_key("known", TARGET[::-1]))["differs"] == "target"
    near = differs(make_key("new"), (64, 128))
    assert (near["differs"], near["neighbour"]["distance"]) == ("extents", 1.0)
    assert "128 instead of 64" in near["detail"]
    shell.publish("private", zone="dev/me")
    assert differs(make_key("private"))["differs"] == "zone"
    own = shell.cache("why-miss", "conv1", "--zone", "dev/me")["now"]
    assert own["differs"] == "trust"
    assert "dev/me" in own["detail"]


def test_a_runner_of_another_size_is_told_by_its_threads(shell: Shell) -> None:
    two = {"kind": "llvm", "mcpu": "skylake", "num-cores": 2}
    one = target_key({**two, "num-cores": 1}).digest
    config = CacheConfig(url=shell.url)
    record = msgspec.structs.replace(make_record("known"), key=make_key("known", one))
    assert SharedCache(config, state=shell.root / "s", root=shell.root).publish([record])
    planned(shell, make_key("known", target_key(two).digest), attributes=json.dumps(two))
    now = shell.cache("why-miss", "conv1")["now"]
    assert now["differs"] == "target"
    assert now["detail"] == "recorded on runners of another size: threads 1 there, 2 here"


def test_an_unknown_task_lists_those_there_are(shell: Shell) -> None:
    planned(shell, make_key())
    where = ("--out", str(shell.root / "out"))
    assert 'Name one of: "conv1".' in shell.shown("why-miss", "pool9", *where, code=2)
    assert "first key that differs: skeleton" in shell.shown("why-miss", "conv1", *where)
    artifact_io.write(shell.root / "out" / "plan.json", make_plan(make_resolution([])))
    assert "the last plan has no tasks" in shell.shown("why-miss", "conv1", *where, code=2)


def test_a_run_that_has_no_plan_yet_is_told_to_who_asks(shell: Shell) -> None:
    where = ("--out", str(shell.root / "out"))
    said = shell.shown("why-miss", "conv1", *where, code=2)
    assert "`tunegate run` or `tunegate plan` writes it" in said
    with opened_output(shell.root / "out", "run"):
        said = shell.shown("why-miss", "conv1", *where, code=2)
    assert f"process {os.getpid()} (tunegate run, since" in said
    assert "has no plan yet. Ask again" in said


def test_every_task_has_a_row_and_the_taken_ones_are_counted(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    results = (
        Revalidated(name="conv", key=make_key(), status="taken", claimed_ms=1.25, measured_ms=1.5),
        Revalidated(
            name="dense", key=make_key("d"), status="rejected", claimed_ms=2.0, reason="it\x1b died"
        ),
        Revalidated(
            name="pool", key=make_key("p"), status="slower", claimed_ms=2.0, is_implausible=True
        ),
    )
    show_revalidation("promoted", results)
    lines = capsys.readouterr().out.splitlines()
    names = ("conv", "dense", "pool")
    conv, dense, pool = (next(line for line in lines if name in line) for name in names)
    assert conv.split() == ["conv", "taken", "1.25", "1.5"]
    assert dense.split() == ["dense", "rejected", "2", "it\\u001b", "died"]
    assert "not what was claimed" in pool
    assert "better records now: 1 of 3 tasks" in lines


def test_what_the_cache_holds_is_counted_by_zone(shell: Shell) -> None:
    assert shell.cache("stats")["contents"] == []
    shell.publish("a", "b", "c")
    shell.cache("compact")
    shell.cache("gc")
    shell.publish("d", zone="dev/me")
    mine, main = shell.cache("stats")["contents"]
    assert (main["version"], main["segments"], main["archived"]) == (1, 0, 3)
    assert (main["records"], main["workloads"], main["corrupt"]) == (3, 3, 0)
    assert (mine["zone"], mine["segments"], mine["records"]) == ("dev/me", 1, 1)
    shown = shell.shown("stats")
    assert "dev/me" in shown
    assert "segments: files of records that wait for cache compact" in shown


KEY = group_of("", TARGET).target
ROW = GroupSummary(
    zone="main",
    target=KEY,
    version=0,
    segments=1,
    archived=0,
    records=1,
    workloads=1,
    devices=("AMD EPYC 7B13",),
    failures=0,
    refused=0,
    corrupt=0,
    size_bytes=1,
)


def test_hit_rate_and_savings_are_those_of_the_latest_runs(shell: Shell, tmp_path: Path) -> None:
    assert "no run that wrote to zone main has looked anything up yet" in shell.shown("stats")
    lines = [entry(at, target_key=KEY) for at in range(3)]
    store, kept = FileStore(Path(shell.url)), FileStore(tmp_path)
    assert write_history(store, CacheConfig(url=shell.url), lines, 1, kept) == ""
    shell.publish("a")
    shown = " ".join(shell.shown("stats").split())
    assert "the latest 3 runs that wrote to zone main: hit rate 75% of 30 look-ups" in shown
    assert "12 min (0.2400 USD) of tuning saved" in shown
    found = shell.cache("stats")
    assert found["used"]["cost"]["hits"] == pytest.approx(3 * COST.hits)
    assert found["targets"][KEY].startswith("cpu: ")


def test_a_target_has_the_name_that_runs_gave_it_or_that_of_its_devices() -> None:
    assert target_names([ROW], [entry(0, target_key=KEY)]) == {KEY: "cpu: AMD EPYC 7B13"}
    assert target_names([ROW], []) == {KEY: "AMD EPYC 7B13"}
    assert target_names([msgspec.structs.replace(ROW, devices=())], []) == {KEY: KEY[:8]}


def test_two_targets_of_one_name_are_told_apart() -> None:
    other = msgspec.structs.replace(ROW, target="f" * 16)
    names = target_names([ROW, other], [])
    assert names == {KEY: f"AMD EPYC 7B13 {KEY[:8]}", "f" * 16: "AMD EPYC 7B13 ffffffff"}
    called = target_names([ROW, other], [entry(0, target_key=KEY)])
    assert called[KEY] == f"cpu: AMD EPYC 7B13 {KEY[:8]}"
    assert called["f" * 16] == names["f" * 16]


def test_a_name_that_lies_in_the_store_cannot_move_the_cursor() -> None:
    row = msgspec.structs.replace(ROW, devices=("\x1b[2Jcpu",))
    assert "\x1b" not in target_names([row], [])[KEY]
