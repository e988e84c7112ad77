"""Records that a pull request writes into its own zone, and what base and head are built with.

The base knows a fast schedule of its one layer, which the head does not have. The pull request's
zone claims a slow one to be a fifth faster: a base that believed it would be slowed down, and hide
the second layer of the head.
"""

import math
import shutil
from pathlib import Path

import msgspec
import numpy as np
import onnx
import pytest
from onnx import helper, numpy_helper

from tests.support.small_onnx import conv_model, save
from tests.support.workspace import COMPILED, FIRST_ANALYSIS, Workspace
from tunegate.artifacts import artifact_io
from tunegate.artifacts.measurements import MeasurementRun
from tunegate.artifacts.outcomes import TaskOutcome, TuningOutcome
from tunegate.artifacts.plans import TuningPlan
from tunegate.artifacts.tasks import ResolvedTask
from tunegate.compiler.schedules.schedule_choice import record_id
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache
from tunegate.system.machine.device import ThisMachine
from tunegate_cache.format.records import CONFIRMED_REPEATS, ExactHit, TuningRecord

pytestmark = [pytest.mark.e2e, pytest.mark.timeout(900)]

CONFIG = COMPILED.replace("trials: 2", "trials: 8") + FIRST_ANALYSIS
ZONE = "pr/org/x/7"
# Three channels fill no vector, so that no default schedule is good and the record's is used.
CHANNELS, OUT, SIZE = 32, 3, 28


def one_layer() -> onnx.ModelProto:
    return conv_model(channels=CHANNELS, out=OUT, size=SIZE)


def two_layers() -> onnx.ModelProto:
    """The model from before, its layer with an Abs in it, and another layer behind it."""
    model = one_layer()
    graph = model.graph
    weight = np.random.default_rng(3).standard_normal((CHANNELS, OUT, 3, 3))
    graph.initializer.append(numpy_helper.from_array(weight.astype(np.float32), "w2"))
    graph.node[-1].output[0] = "g"
    graph.node.append(helper.make_node("Abs", ["g"], ["h"]))
    graph.node.append(helper.make_node("Conv", ["h", "w2"], ["y"], name="more", pads=[1] * 4))
    graph.output[0].type.tensor_type.shape.dim[1].dim_value = CHANNELS
    return model


class Shop:
    """A repository whose main has tuned. Its best schedule, and
    the same without tiles, are what the tests forge with."""

    def __init__(self, directory: Path) -> None:
        self.workspace = Workspace(directory / "shop", CONFIG)
        self.root = self.workspace.root
        save(one_layer(), self.root / "models" / "m.onnx")
        self.workspace.git("add", "--all")
        self.workspace.git("commit", "-q", "--amend", "-m", "one layer")
        for command in ("plan", "tune"):
            self.workspace.tunegate(command, code=0)
        self.task = next(t for t in self.planned() if "conv" in t.task.operator).task
        found = self.opened("main").lookup([(self.task.key, self.task.shape)])[self.task.key]
        assert isinstance(found, ExactHit)
        self.best = next(record for record in found.records if record.template)
        self.slow = without_tiles(self.best)
        # The times are made up: a test's machine may be too busy to tell even these two apart.
        usual = min(self.best.run_nanoseconds)
        self.best = with_time(self.best, usual)
        self.slow = with_time(self.slow, 3 * usual)
        self.workspace.git("switch", "-q", "-c", "pull-request")
        save(two_layers(), self.root / "models" / "m.onnx")
        self.workspace.commit()
        # What tasks the models have is remembered in the cache: no compiler is asked again.
        shutil.rmtree(self.root / "cache")
        assert self.tunegate("plan") == 0
        self.lists = Path(shutil.copytree(self.root / "cache", directory / "lists"))

    def planned(self) -> tuple[ResolvedTask, ...]:
        return artifact_io.read(self.root / ".tunegate" / "plan.json", TuningPlan).resolution.tasks

    def trials(self) -> int:
        """The number of trials of the layer that only the base has."""
        plan = artifact_io.read(self.root / ".tunegate" / "plan.json", TuningPlan)
        tasks = [task for shard in plan.shards for task in shard.tasks]
        return next(t.trials for t in tasks if t.resolved.task.key == self.task.key)

    def opened(self, zone: str) -> SharedCache:
        config = CacheConfig(url="cache", zone=zone, read_zones=(zone,))
        device = ThisMachine("llvm").fingerprint()
        return SharedCache(config, state=self.root / "state", root=self.root, device=device)

    def stock(self, *, main: list[TuningRecord], own: list[TuningRecord]) -> None:
        """Puts these records of the layer into the two zones, and nothing else."""
        shutil.rmtree(self.root / "cache")
        shutil.copytree(self.lists, self.root / "cache")
        for zone, records in (("main", main), (ZONE, own)):
            assert self.opened(zone).publish(records)

    def tunegate(self, *arguments: str) -> int:
        return self.workspace.tunegate(*arguments, "--zone", ZONE, "--base", "main").returncode

    def tuned(self) -> TaskOutcome:
        """Plans and tunes: what became of the layer that only the base has."""
        assert self.tunegate("plan", "--trials", "4") == 0
        self.workspace.tunegate("tune", "--zone", ZONE, code=0)
        outcome = artifact_io.read(self.root / ".tunegate" / "outcome-0.json", TuningOutcome)
        assert sum(task.trials for task in outcome.tasks) <= 4  # two for the claim, two to search
        return next(task for task in outcome.tasks if task.key == self.task.key)


@pytest.fixture(scope="module")
def shop(tmp_path_factory: pytest.TempPathFactory) -> Shop:
    return Shop(tmp_path_factory.mktemp("own-zone"))


def without_tiles(record: TuningRecord) -> TuningRecord:
    """The schedule with all tiles of one element: it computes the same without vectors."""
    tiles = 4  # levels of the tiles of a space axis, of which the last is computed by vectors
    decisions = tuple(
        (at, (math.prod(factors), *(1,) * (tiles - 1)) if len(factors) == tiles else factors)
        for at, factors in record.decisions
    )
    return msgspec.structs.replace(record, decisions=decisions)


def with_time(record: TuningRecord, nanoseconds: int) -> TuningRecord:
    """The record as if it had been measured often enough to be believed."""
    return msgspec.structs.replace(record, run_nanoseconds=(nanoseconds,) * CONFIRMED_REPEATS)


def forged(record: TuningRecord, like: TuningRecord) -> TuningRecord:
    """Claims to be a fifth faster than `like`."""
    lie = tuple(int(0.8 * n) for n in like.run_nanoseconds)
    return msgspec.structs.replace(record, run_nanoseconds=lie)


def test_a_slow_schedule_that_claims_to_be_fast_slows_no_base_down(shop: Shop) -> None:
    shop.stock(main=[shop.best], own=[forged(shop.slow, like=shop.best)])
    assert shop.tunegate("run", "--trials", "0") == 1
    measured = artifact_io.read(shop.root / ".tunegate" / "measurements.json", MeasurementRun)
    trusted = record_id(shop.task.key, shop.best)
    base = measured.builds[0].base
    assert base is not None
    (layer,) = [task for task in base.tasks if task.key == shop.task.key]
    assert (layer.rid, layer.source) == (trusted, "exact")
    assert layer.verified
    report = (shop.root / ".tunegate" / "report.md").read_text()
    assert f"zone {ZONE}, which is not trusted" in report


@pytest.mark.proof
def test_with_a_budget_a_claim_and_what_it_displaces_are_measured_and_count(shop: Shop) -> None:
    lie = forged(shop.slow, like=shop.best)
    for main, own, source in ((shop.best, lie, "exact"), (shop.slow, shop.best, "own-zone")):
        shop.stock(main=[main], own=[own])
        outcome = shop.tuned()
        assert outcome.trials == 2
        assert outcome.source in {source, "default"}  # which is faster the machine decides
        assert shop.slow.decisions not in [each.decisions for each in outcome.records[:1]]


def test_a_claim_does_not_end_the_search_of_what_the_base_uses(shop: Shop) -> None:
    shop.stock(main=[], own=[forged(shop.slow, like=shop.best)])
    assert shop.tunegate("plan", "--trials", "16") == 0
    assert shop.trials() > 0


def test_failures_that_only_the_own_zone_knows_of_are_tried_all_the_same(shop: Shop) -> None:
    wrong = msgspec.structs.replace(
        shop.best, run_nanoseconds=(), status="wrong", measured_at=shop.best.measured_at + 10
    )
    shop.stock(main=[shop.best], own=[wrong])
    assert shop.tunegate("plan") == 0
    found = next(t for t in shop.planned() if t.task.key == shop.task.key)
    assert found.lookup == ExactHit((shop.best,))
    assert found.claims is None
