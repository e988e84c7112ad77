from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.artifacts.changes import PolicyChange, Revisions
from tunegate.config import (
    AccuracyConfig,
    Config,
    InputConfig,
    MetricCommandConfig,
    ModelConfig,
    ProfileConfig,
    ValuesConfig,
)
from tunegate.models.reader import GitModelReader
from tunegate.review.compared_work import replaced_values
from tunegate.review.named_files import described_missing, missing_files, replaced_files
from tunegate.system.git.repository import GitRepository

HEAD, BASE, TIP = "head", "base", "tip"
INPUTS = {"x": InputConfig(values=ValuesConfig(file="./in/x.npy"))}
CASES = {"x": InputConfig(values=ValuesConfig(cases=("a.npy", 3, "/mnt/b.npy", "../c.npy")))}
COMMAND = MetricCommandConfig(run="bin/judge --words=lib/words.txt run.PY team/model", at_most=1)
CONFIG = Config(
    models=(
        ModelConfig(
            path="m.onnx",
            inputs=INPUTS,
            profiles={"long": ProfileConfig(inputs=CASES)},
            accuracy=AccuracyConfig(metric_command=COMMAND),
        ),
    ),
)


def _missing(revisions: Revisions, **there: str) -> list[str]:
    found = missing_files(CONFIG, revisions, lambda at, path: path if path in there[at] else "")
    return [each.path for each in found]


def test_each_file_that_must_be_there_is_looked_for_and_no_other_word() -> None:
    found = _missing(Revisions(base=None, head=HEAD), head="")
    assert found == ["in/x.npy", "a.npy", "bin/judge", "run.PY"]
    assert _missing(Revisions(base=None, head=HEAD), head=" ".join(found)) == []


def test_a_deleted_file_is_missed_and_one_that_the_base_has_got_since_is_not() -> None:
    behind = Revisions(base=BASE, head=HEAD, policy=TIP)
    others = "in/x.npy bin/judge run.PY"
    assert _missing(behind, head=others, base="", tip="a.npy") == []
    assert _missing(behind, head=others, base="a.npy", tip="a.npy") == ["a.npy"]


def test_what_is_missing_is_told_with_its_place_and_what_to_do() -> None:
    (missing, *_) = missing_files(CONFIG, Revisions(base=None, head=HEAD), lambda *_: "")
    assert missing.key == "models[0].inputs.x"
    assert described_missing(missing, ["inn/x.npy", "in/x.npz"]) == (
        "models: m.onnx: inputs.x.values: in/x.npy: no such file in this revision: "
        "commit it, or correct the path. Did you mean inn/x.npy?"
    )


def test_a_change_of_what_metrics_read_is_told_and_one_behind_is_not() -> None:
    behind = Revisions(base=BASE, head=HEAD, policy=TIP)
    contents = {(TIP, "bin/judge"): "2", (TIP, "lib/words.txt"): "3", (HEAD, "bin/judge"): "1"}
    told = [*replaced_files(CONFIG, behind, lambda at, path: contents.get((at, path), ""))]
    assert [(each.key, each.old, each.new) for each in told] == [
        ("models[].accuracy.metric-command", "bin/judge 2", "bin/judge 1")
    ]


NAME = "m.onnx"


def _config(values: ValuesConfig) -> Config:
    inputs = {"x": InputConfig(values=values)}
    profiles = {name: ProfileConfig(inputs=inputs) for name in ("short", "long")}
    return Config(models=(ModelConfig(path=NAME, inputs=inputs, profiles=profiles),))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    return new_repository(tmp_path / "repository")


def _told(
    checkout: Checkout,
    head: dict[str, bytes | None],
    *,
    values: ValuesConfig = ValuesConfig(file="in/x.npy"),  # noqa: B008 -- frozen
    has_base: bool = True,
) -> list[PolicyChange]:
    base = checkout.commit({"in/x.npy": b"old", NAME: b"model"})
    revisions = Revisions(base=base if has_base else None, head=checkout.commit(head))
    reader = GitModelReader(GitRepository(checkout.path))
    names = [f"{NAME}@short", f"{NAME}@long"]
    return list(replaced_values(reader, revisions, _config(values), names))


def test_a_file_that_is_replaced_counts_once_merged_and_is_told_once(checkout: Checkout) -> None:
    (told,) = _told(checkout, {"in/x.npy": b"easier"})
    assert (told.key, told.counts, told.model) == (
        "models[].inputs.x.values",
        "once merged",
        NAME,
    )
    assert told.old != told.new


def test_a_file_that_is_deleted_is_told(checkout: Checkout) -> None:
    (told,) = _told(checkout, {"in/x.npy": None})
    assert told.new == "deleted"


@pytest.mark.parametrize("head", [{"in/x.npy": b"old"}, {"other.npy": b"new"}])
def test_nothing_is_told_of_files_that_stay(
    checkout: Checkout, head: dict[str, bytes | None]
) -> None:
    assert _told(checkout, head) == []


def test_a_new_file_changes_nothing(checkout: Checkout) -> None:
    given = ValuesConfig(cases=("new.npy", 7))
    assert _told(checkout, {"new.npy": b"new"}, values=given) == []


def test_without_a_base_there_is_nothing_to_replace(checkout: Checkout) -> None:
    assert _told(checkout, {"in/x.npy": b"new"}, has_base=False) == []
