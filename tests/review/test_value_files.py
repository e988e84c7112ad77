from __future__ import annotations

from pathlib import Path

import pytest

from tests.support.git_repository import Checkout, new_repository
from tunegate.artifacts.changes import PolicyChange, Revisions
from tunegate.config import Config, InputConfig, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.models.reader import GitModelReader
from tunegate.review.compared_work import replaced_values
from tunegate.system.git.repository import GitRepository

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
