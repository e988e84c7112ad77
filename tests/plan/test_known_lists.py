"""A model's tasks come from the cache only where that can lean no comparison."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import cast

import msgspec
import pytest

from tests.measure.test_elections import ORIGIN, tools_with
from tests.plan.shelf import Shelf
from tests.support.tuning_tasks import make_task
from tunegate.artifacts.tasks import TaskUse, TuningTask
from tunegate.config import TargetConfig
from tunegate.errors import ModelError
from tunegate.plan.task_lists import KnownLists
from tunegate.ports import Compiler, ModelJob
from tunegate_cache.format.records import ExactHit, WorkloadKey

CPU = TargetConfig(name="cpu")
TASKS = [
    msgspec.structs.replace(
        make_task(name),
        uses=(TaskUse(model="m.onnx", side="head", weight=2, name=f"layer/{name}"),),
        flops=30.0,
        bytes_moved=40.0,
    )
    for name in ("conv", "dense")
]


class Listing:
    """A compiler that lists TASKS, or raises, and what it was asked about."""

    def __init__(self, answer: Sequence[TuningTask] | ModelError = TASKS) -> None:
        self._answer = answer
        self.opened: list[str] = []

    def kernels(self, jobs: Sequence[ModelJob]) -> Sequence[str]:
        return ["" if job.file.stem == "odd" else job.file.stem for job in jobs]

    def tasks(
        self, jobs: Sequence[ModelJob], known: Mapping[int, Sequence[TuningTask]]
    ) -> Sequence[Sequence[TuningTask] | ModelError]:
        self.opened += [job.file.name for n, job in enumerate(jobs) if n not in known]
        return [known.get(n, self._answer) for n in range(len(jobs))]


def job(file: str, path: str = "m.onnx") -> ModelJob:
    return ModelJob(file=Path(file), path=path, shapes={}, target=CPU)


BOTH = [job("same.head"), job("same.base")]


def lists(
    place: Path, shelf: Shelf, compiler: Listing, *, are_believed: bool = True, installed: str = "i"
) -> KnownLists:
    origin = msgspec.structs.replace(ORIGIN, installed=installed)
    tools = replace(tools_with(shelf, place, origin=origin), compiler=cast("Compiler", compiler))
    return KnownLists(tools, are_believed=are_believed)


def taught(place: Path, compiler: Listing | None = None) -> Shelf:
    """A cache in which an earlier run has left its list."""
    shelf = Shelf()
    lists(place, shelf, compiler or Listing()).list_tasks([job("same.head")])
    known: dict[WorkloadKey, ExactHit] = {}
    for record in shelf.records:
        known[record.key] = ExactHit((*getattr(known.get(record.key), "records", ()), record))
    return Shelf(known)


def test_a_model_is_opened_once_and_then_remembered(tmp_path: Path) -> None:
    shelf, compiler = taught(tmp_path), Listing()
    assert lists(tmp_path, shelf, compiler).list_tasks(BOTH) == [TASKS, TASKS]
    assert compiler.opened == []
    assert shelf.records == []


OTHERS = [
    [job("same.head")],
    [job("same.head"), job("other.base")],
    [job("same.head"), job("odd.base")],
    [job("odd.head"), job("odd.base")],
    [job("same.head"), job("same.base", path="another.onnx")],
    [BOTH[0], msgspec.structs.replace(BOTH[1], shapes={"x": (2, 3)})],
    [msgspec.structs.replace(each, target=TargetConfig(name="cpu", threads=7)) for each in BOTH],
    [msgspec.structs.replace(each, target=TargetConfig(name="cpu", cpu="znver3")) for each in BOTH],
]


@pytest.mark.parametrize("jobs", OTHERS)
def test_sides_that_are_not_alike_and_other_models_are_opened(
    tmp_path: Path, jobs: Sequence[ModelJob]
) -> None:
    compiler = Listing()
    lists(tmp_path, taught(tmp_path), compiler).list_tasks(jobs)
    assert compiler.opened == [each.file.name for each in jobs]


def test_another_version_of_what_is_installed_lists_anew(tmp_path: Path) -> None:
    compiler = Listing()
    lists(tmp_path, taught(tmp_path), compiler, installed="newer").list_tasks(BOTH)
    assert len(compiler.opened) == len(BOTH)


def test_warm_believes_no_list_and_corrects_a_wrong_one(tmp_path: Path) -> None:
    shelf, compiler = taught(tmp_path, Listing(TASKS[:1])), Listing()
    warm = lists(tmp_path, shelf, compiler, are_believed=False)
    assert warm.list_tasks(BOTH) == [TASKS, TASKS]
    assert len(compiler.opened) == len(BOTH)
    assert len(shelf.records) == 1
