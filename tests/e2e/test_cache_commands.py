"""`tunegate cache ...` over a directory and over a bucket, as a person types it."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.servers.moto_server import BUCKET
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate import artifact_io
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.cost import Cost
from tunegate.artifacts.plans import Budget, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskUse, TuningTask
from tunegate.cli.main import main
from tunegate.config import CacheConfig
from tunegate.edges.cache.shared_cache import SharedCache
from tunegate_cache.format.records import Miss, WorkloadKey
from tunegate_cache.stores.files import FileStore


class Shell:
    """A directory with a configuration, and the cache it names."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self.root, self._capsys, self.url = root, capsys, url
        root.mkdir(exist_ok=True)
        self.configure("")

    def configure(self, more: str) -> None:
        text = f'models:\n  - path: "*.onnx"\ncache:\n  url: "{self.url}"\n{more}'
        (self.root / "tunegate.yaml").write_text(text)

    def cache(self, *line: str, code: int = 0) -> dict[str, Any]:
        """What a command prints with --json."""
        where = ["--repository", str(self.root), "--out", str(self.root / "out")]
        assert main(["cache", *line, *where, "--json"]) == code, self._capsys.readouterr().err
        printed = self._capsys.readouterr().out
        return json.loads(printed) if printed.startswith("{") else {}

    def shown(self, *line: str, code: int = 0) -> str:
        assert main(["cache", *line, "--repository", str(self.root)]) == code
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def publish(self, *workloads: str, zone: str = "main") -> None:
        config = CacheConfig(url=self.url, zone=zone)
        cache = SharedCache(config, state=self.root / "state", root=self.root)
        for workload in workloads:
            assert cache.publish([make_record(workload)])


@pytest.fixture
def shell(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> Shell:
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("TUNEGATE_SIGNING_KEY", raising=False)
    return Shell(tmp_path / "w", capsys, str(tmp_path / "cache"))


def test_segments_are_compacted_collected_and_counted(shell: Shell) -> None:
    shell.publish("a", "b", "c")
    (group,) = shell.cache("compact")["groups"]
    assert (group["status"], group["segments"], group["records"]) == ("compacted", 3, 3)
    (would,) = shell.cache("gc", "--dry-run")["groups"]
    assert would["segments"] == 3
    assert shell.cache("gc")["groups"][0]["segments"] == 3
    assert shell.cache("gc")["groups"][0]["segments"] == 0
    (held,) = shell.cache("stats")["contents"]
    assert (held["version"], held["segments"], held["archived"]) == (1, 0, 3)
    assert (held["records"], held["workloads"], held["corrupt"]) == (3, 3, 0)
    assert "main" in shell.shown("stats")


def test_a_zone_that_is_named_is_the_only_one_compacted(shell: Shell) -> None:
    shell.publish("a")
    shell.publish("a", zone="dev/me")
    groups = shell.cache("compact", "--zone", "dev/me")["groups"]
    assert [group["group"]["zone"] for group in groups] == ["dev/me"]


def test_damage_is_found_and_repaired(shell: Shell) -> None:
    shell.publish("a", "b")
    shell.cache("compact")
    shell.cache("gc")
    assert shell.cache("fsck")["found"] == []
    store = FileStore(Path(shell.url))
    index = next(name for name in store.names("") if "/idx/" in name)
    store.delete(index)
    shell.publish("c")
    segment = next(name for name in store.names("") if "/seg/" in name)
    (Path(shell.url) / segment).write_bytes(b"garbage")
    kinds = [flaw["kind"] for flaw in shell.cache("fsck", code=4)["found"]]
    assert kinds == ["snapshot", "segment"]
    assert "--repair" in shell.shown("fsck", code=4)
    assert shell.cache("fsck", "--repair")["left"] == []
    assert shell.cache("stats")["contents"][0]["records"] == 2


def test_an_empty_cache_is_led_to_its_first_run(shell: Shell) -> None:
    diagnosis = shell.cache("doctor")
    assert all(check["ok"] for check in diagnosis["checks"])
    assert diagnosis["next_steps"][0].startswith("the cache is empty: put cache: {url:")
    assert "tunegate run" in diagnosis["next_steps"][1]
    assert "1. the cache is empty" in shell.shown("doctor")


def test_an_empty_bucket_is_led_to_its_first_run(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    shell.url = f"s3://{BUCKET}/fresh"
    shell.configure(f"  endpoint-url: {endpoint}\n  region: us-east-1\n")
    diagnosis = shell.cache("doctor")
    assert all(check["ok"] for check in diagnosis["checks"]), diagnosis
    assert "the cache is empty" in diagnosis["next_steps"][0]
    assert shell.cache("probe")["findings"][0]["ok"]


def test_a_bucket_that_is_not_there_is_said_with_what_to_check(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    shell.url = "s3://no-such-bucket-here/x"
    shell.configure(f"  endpoint-url: {endpoint}\n  region: us-east-1\n")
    diagnosis = shell.cache("doctor", code=4)
    assert "NoSuchBucket" in diagnosis["checks"][0]["detail"]
    assert "check the bucket's name" in diagnosis["next_steps"][0]
    assert "Run tunegate cache doctor" in shell.shown("stats", code=4)


def test_a_revoked_repository_is_served_no_more(shell: Shell) -> None:
    shell.publish("a", "b")
    shell.cache("compact")
    shell.cache("revoke", "--since", "2020-01-01")
    assert shell.cache("stats")["contents"][0]["records"] == 0
    assert "what is to be revoked" in shell.shown("revoke", code=2)
    assert "not a date" in shell.shown("revoke", "--since", "soon", code=2)


def test_a_pin_is_written_obeyed_and_removed(shell: Shell) -> None:
    assert "Run tunegate cache compact" in shell.shown("pin", code=2)
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
    shell.cache("pin", "--remove")
    assert not (shell.root / "tunegate.lock").exists()


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
    assert "no such directory" in shell.shown("push", str(tmp_path / "none"), code=2)


def planned(shell: Shell, key: WorkloadKey, extents: tuple[int, ...] = (64, 64)) -> None:
    """Writes a plan as if a run had looked this task up and missed."""
    task = TuningTask(
        key=key,
        shape=make_shape(extents=extents),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(TaskUse(model="m.onnx", side="head", weight=1, name="conv1"),),
    )
    use = CacheUse(location=shell.url, zone="main", mode="rw")
    plan = TuningPlan(
        changes=ChangeSet(revisions=Revisions(base=None, head="a" * 40), models=()),
        resolution=Resolution(tasks=(ResolvedTask(task, Miss("absent")),), cache=use),
        shards=(),
        budget=Budget(seconds=1.0, trials=None),
        estimate=Cost(seconds=0.0),
    )
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


def test_an_unknown_task_lists_those_there_are(shell: Shell) -> None:
    planned(shell, make_key())
    where = ("--out", str(shell.root / "out"))
    assert "Name one of: conv1" in shell.shown("why-miss", "pool9", *where, code=2)
    assert "first key that differs: skeleton" in shell.shown("why-miss", "conv1", *where)
