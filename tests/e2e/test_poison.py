"""A pull request that writes the "fastest" record under main's own key, and main's next build."""

import shutil
import time
from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from msgspec.structs import replace

from tests.support.measured_cells import make_job
from tests.support.small_onnx import conv_model, save
from tests.support.tuning_tasks import make_planned, make_shard
from tunegate.artifacts.builds import Build
from tunegate.artifacts.inputs import ShapedModel
from tunegate.artifacts.plans import Budget
from tunegate.artifacts.tasks import RecordOrigin, TuningTask
from tunegate.compiler.versions import toolchain
from tunegate.config import CacheConfig, Config, ModelConfig, TargetConfig
from tunegate.errors import ModelError
from tunegate.ports import ModelJob
from tunegate.runtimes.tvm.compiler import MetaScheduleCompiler
from tunegate.runtimes.tvm.runtime import PROGRAMS
from tunegate.system.cache.shared_cache import SharedCache
from tunegate.tune.tuner import EngineTuner
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Provenance,
    TuningRecord,
    WorkloadKey,
)

pytestmark = pytest.mark.e2e

TARGET = TargetConfig(name="cpu", threads=1)
DEVICE = DeviceFingerprint(name="test", kind="cpu", units=1, memory_bytes=1)
PULL_REQUEST = "pr/org/x/7"
FILES = ("model.so", "artifact.json")


class Shop:
    """One model, its task, and what a short tuning learned of it."""

    def __init__(self, directory: Path) -> None:
        self.model = save(conv_model(channels=64, out=3, size=14), directory / "m.onnx")
        self.compiler = MetaScheduleCompiler(directory / "compiler", seed=1)
        self.job = ModelJob(file=self.model, path="m.onnx", shapes={}, target=TARGET)
        (tasks,) = self.compiler.tasks([self.job])
        self.compiler.close()
        assert not isinstance(tasks, ModelError)
        (self.task,) = [task for task in tasks if "conv" in task.operator]
        self.records = [r for r in self._learn(directory) if r.status == "ok" and r.template]
        self.records.sort(key=lambda record: record.median_ms)
        self.others = self._different_builds()

    def _learn(self, directory: Path) -> list[TuningRecord]:
        tuner = EngineTuner(
            seed=1,
            config=Config(models=(ModelConfig(path="m.onnx"),), targets=(TARGET,)),
            origin=RecordOrigin(
                device=DEVICE,
                toolchain=toolchain(),
                source=Provenance(repository="org/x", ref="refs/heads/main"),
            ),
            clock=time,
            programs=PROGRAMS,
            scratch=directory / "tuner",
        )
        shard = make_shard(make_planned(self.task, trials=6), budget=Budget(seconds=None, trials=6))
        found: list[TuningRecord] = []

        def publish(records: Sequence[TuningRecord]) -> bool:
            found.extend(records)
            return True

        list(tuner.tune(shard, {("m.onnx", "head"): ShapedModel(self.model, {})}, publish))
        return found

    def _different_builds(self) -> list[TuningRecord]:
        """Two records that build other code than the best one: not all decisions change it."""
        directory = self.model.parent / "different"
        best = self.build({self.task.key: ExactHit((self.records[0],))}, directory / "best").key
        found: list[TuningRecord] = []
        for number, record in enumerate(reversed(self.records[1:])):
            hit = {self.task.key: ExactHit((record,))}
            if self.build(hit, directory / str(number)).key != best:
                found.append(record)
            if len(found) == 2:
                break
        assert found, "the short tuning found one schedule only"
        return found[::-1]

    def build(self, found: Mapping[WorkloadKey, Lookup], directory: Path) -> Build:
        records = {k: hit.records for k, hit in found.items() if isinstance(hit, ExactHit)}
        sources = dict.fromkeys(records, "exact")
        job = make_job(self.job, directory, records=records, sources=sources)
        (build,) = self.compiler.build([job])
        assert build.error is None
        return build


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("shop"))


@pytest.fixture
def stores(shop: Shop, tmp_path: Path) -> tuple[Path, Path]:
    """Two stores with main's honest record; in the second a pull request wrote as well."""
    honest, others = shop.records[0], shop.others
    clean, poisoned = tmp_path / "clean", tmp_path / "poisoned"
    assert zone_of(clean, tmp_path, "main").publish([honest])
    shutil.copytree(clean, poisoned)
    fastest = replace(others[-1], run_nanoseconds=(2,))
    likely = replace(
        others[0], run_nanoseconds=tuple(max(1, ns // 2) for ns in honest.run_nanoseconds)
    )
    odd = replace(honest, decisions=((100_000_000, (1, 1)),), run_nanoseconds=(1,))
    assert zone_of(poisoned, tmp_path, PULL_REQUEST).publish([fastest, likely, odd])
    return clean, poisoned


def zone_of(store: Path, tmp_path: Path, zone: str, *read: str) -> SharedCache:
    config = CacheConfig(url=str(store), zone=zone, read_zones=read)
    return SharedCache(config, state=tmp_path / "state", root=tmp_path, device=DEVICE)


def looked_up(cache: SharedCache, task: TuningTask) -> Mapping[WorkloadKey, Lookup]:
    return cache.lookup([(task.key, task.shape)])


def test_a_run_of_main_neither_sees_nor_builds_what_a_pull_request_wrote(
    shop: Shop, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    caches = [zone_of(store, tmp_path, "main", "main", "rel") for store in stores]
    before, after = (looked_up(cache, shop.task) for cache in caches)
    assert before == after == {shop.task.key: ExactHit((shop.records[0],))}
    clean, poisoned = (cache.use() for cache in caches)
    assert replace(poisoned, location="", seconds=0.0) == replace(clean, location="", seconds=0.0)
    honest = shop.build(before, tmp_path / "one" / "build")
    again = shop.build(after, tmp_path / "two" / "build")
    assert (again.key, again.tasks) == (honest.key, honest.tasks)
    for name in FILES:
        one, two = (tmp_path / run / "build" / name for run in ("one", "two"))
        assert one.read_bytes() == two.read_bytes(), name


def test_not_even_the_pull_request_takes_its_own_claims_for_answers(
    shop: Shop, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    clean, poisoned = (zone_of(store, tmp_path, PULL_REQUEST, "main") for store in stores)
    assert looked_up(poisoned, shop.task) == looked_up(clean, shop.task)
    claims = poisoned.claims([(shop.task.key, shop.task.shape)])[shop.task.key]
    assert [record.run_nanoseconds for record in claims.records[:2]] == [(1,), (2,)]


def test_the_poison_is_real_for_a_run_that_reads_it(
    shop: Shop, stores: tuple[Path, Path], tmp_path: Path
) -> None:
    """The test above would show nothing otherwise. Even then the poison changes a schedule, not a
    result: what does not fit is passed over, what does computes the same."""
    clean, poisoned = stores
    found = looked_up(zone_of(poisoned, tmp_path, PULL_REQUEST, PULL_REQUEST, "main"), shop.task)
    hit = found[shop.task.key]
    assert isinstance(hit, ExactHit)
    assert [r.run_nanoseconds for r in hit.records[:2]] == [(1,), (2,)]
    before = looked_up(zone_of(clean, tmp_path, "main", "main"), shop.task)
    honest = shop.build(before, tmp_path / "one")
    misled = shop.build(found, tmp_path / "two")
    assert misled.key != honest.key
    assert misled.check is not None
    assert misled.check.passed
