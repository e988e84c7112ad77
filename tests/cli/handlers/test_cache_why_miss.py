import json
import os
from pathlib import Path
from typing import Any

import msgspec
import pytest

from tests.cli.handlers.cache_shell import Shell
from tests.support.history import COST, entry
from tests.support.tuning_records import TARGET, make_key, make_record, make_shape
from tunegate.artifacts import artifact_io
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.artifacts.plans import Budget, Cost, TuningPlan
from tunegate.artifacts.tasks import CacheUse, Resolution, ResolvedTask, TaskUse, TuningTask
from tunegate.cli.handlers.cache_stats import target_names
from tunegate.cli.handlers.table import show_revalidation
from tunegate.config import CacheConfig
from tunegate.system.cache.history_log import write_history
from tunegate.system.cache.shared_cache import SharedCache
from tunegate.system.output.directory import opened_output
from tunegate.tune.revalidation import Revalidated
from tunegate_cache.format.names import group_of
from tunegate_cache.format.records import Miss, WorkloadKey
from tunegate_cache.format.target_key import target_key
from tunegate_cache.maintenance.summary import GroupSummary
from tunegate_cache.stores.files import FileStore


def planned(
    shell: Shell, key: WorkloadKey, extents: tuple[int, ...] = (64, 64), attributes: str = ""
) -> None:
    """Writes a plan as if a run had looked this task up and missed."""
    task = TuningTask(
        key=key,
        shape=make_shape(extents=extents),
        target="cpu",
        operator="conv2d",
        dtype="float32",
        flops=1.0,
        uses=(TaskUse(model="m.onnx", side="head", weight=1, name="conv1"),),
        attributes=attributes,
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
            name="dense", key=make_key("d"), status="rejected", claimed_ms=2.0, reason="it died"
        ),
    )
    show_revalidation("promoted", results)
    lines = capsys.readouterr().out.splitlines()
    conv, dense = (next(line for line in lines if name in line) for name in ("conv", "dense"))
    assert conv.split() == ["conv", "taken", "1.25", "1.5"]
    assert dense.split() == ["dense", "rejected", "2", "it", "died"]
    assert "better records now: 1 of 2 tasks" in lines


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


def test_the_hit_rate_and_what_was_saved_are_those_of_the_latest_runs(
    shell: Shell, tmp_path: Path
) -> None:
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
