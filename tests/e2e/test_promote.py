"""A pull request's records on their way to `main`, as a user runs it."""

import json
from pathlib import Path

import msgspec
import pytest

from tests.support.workspace import COMPILED, Workspace
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache
from tunegate_cache.format.names import parse_segment
from tunegate_cache.format.records import TuningRecord
from tunegate_cache.format.signing import TrustedKeys
from tunegate_cache.protocol.segments import opened_segment
from tunegate_cache.stores.files import FileStore

pytestmark = pytest.mark.e2e

PULL = "pr/o/r/7"


def records(workspace: Workspace, zone: str) -> list[TuningRecord]:
    store = FileStore(workspace.root / "cache")
    found: list[TuningRecord] = []
    for name in map(parse_segment, store.names(f"ms1/z/{zone}/")):
        if name is not None:
            contents = opened_segment(name, store.read(name.name), TrustedKeys())
            assert not isinstance(contents, str)
            found += contents.records
    return found


def publish(workspace: Workspace, *lies: TuningRecord) -> None:
    config = CacheConfig(url=str(workspace.root / "cache"), zone=PULL)
    assert SharedCache(config, state=workspace.root.parent / "s", root=workspace.root).publish(lies)


def test_what_is_promoted_was_measured_here_and_lies_are_called_so(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED.replace("trials: 2", "trials: 4"))
    for stage in ("plan", "tune"):
        workspace.tunegate(stage, "--zone", PULL, code=0)
    told = [r for r in records(workspace, PULL) if r.template and r.status == "ok"]
    theirs = [r for r in told if r.shape.extents]  # the others say something of a whole model
    assert theirs
    assert records(workspace, "main") == []
    later = max(r.measured_at for r in theirs) + 99
    lies = [msgspec.structs.replace(r, run_nanoseconds=(100,), measured_at=later) for r in theirs]
    decisions = ((0, (10**9, 10**9)),)
    bomb = msgspec.structs.replace(lies[0], run_nanoseconds=(50,), decisions=decisions)
    publish(workspace, *lies, bomb)
    promoted = workspace.tunegate("cache", "promote", "--from-zone", PULL, "--json", code=0)
    tasks = json.loads(promoted.stdout)["tasks"]
    assert {task["status"] for task in tasks} <= {"taken", "slower"}
    assert any(task["is_implausible"] for task in tasks), tasks
    ours = records(workspace, "main")
    assert all(r.source.ref == f"promoted from {PULL}" for r in ours)
    assert all(r.median_ms > 0.0002 for r in ours), ours
    assert not any(r.decisions == bomb.decisions for r in ours)
    shards = json.loads(workspace.tunegate("plan", "--json", code=0).stdout)["shards"]
    known = {record.key.workload for record in ours}
    trials = [
        task["trials"]
        for shard in shards
        for task in shard["tasks"]
        if task["resolved"]["task"]["key"]["workload"] in known
    ]
    assert trials
    assert not any(trials)  # the push of the merge pays for none of them again


def test_a_zone_to_itself_and_a_zone_that_is_none_are_usage_errors(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    for zone in ("main", "../x"):
        done = workspace.tunegate("cache", "promote", "--from-zone", zone, code=2)
        assert "--from-zone" in done.stderr


def test_a_zone_without_records_promotes_nothing(tmp_path: Path) -> None:
    done = Workspace(tmp_path / "w").tunegate("cache", "promote", "--from-zone", PULL, code=0)
    assert f"{PULL} to main: no record for a task of these models" in done.stdout


def test_a_zone_that_cannot_be_read_is_not_called_empty(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w", COMPILED)
    (workspace.root / "cache").write_bytes(b"")
    done = workspace.tunegate("cache", "promote", "--from-zone", PULL, code=4)
    assert "no record" not in done.stdout
    assert "cache: " in done.stdout
