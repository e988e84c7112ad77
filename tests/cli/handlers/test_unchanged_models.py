from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support import report_parts as parts
from tunegate.artifacts.changes import ChangeSet, Revisions
from tunegate.cli.handlers.run import what_to_do
from tunegate.config import CacheConfig, Config, ModelConfig
from tunegate_cache.stores.files import FileStore

UNCHANGED = ChangeSet(
    revisions=Revisions(base="a" * 40, head="b" * 40, reason="asked"),
    models=(),
    unchanged=("a.onnx", "b.onnx"),
)


def told(cache: CacheConfig, root: Path) -> tuple[str, ...]:
    config = Config(models=(ModelConfig(path="*.onnx"),), cache=cache)
    return what_to_do(config, UNCHANGED, root).notes


def test_an_empty_cache_is_to_be_warmed(tmp_path: Path) -> None:
    (note,) = told(CacheConfig(url="cache"), tmp_path)
    assert note == "the cache has nothing yet: tunegate warm tunes what the 2 models here need"


def test_a_change_of_rules_is_not_told_of_the_cache(tmp_path: Path) -> None:
    change = parts.policy_change(key="tunegate-waivers.yaml", old="no waiver", new="up to +9%")
    changes = msgspec.structs.replace(UNCHANGED, policy_changes=(change,))
    config = Config(models=(ModelConfig(path="*.onnx"),), cache=CacheConfig(url="cache"))
    assert what_to_do(config, changes, tmp_path) == changes


def test_what_a_full_one_knows_is_a_question_for_the_doctor(tmp_path: Path) -> None:
    FileStore(tmp_path / "cache").write("ms1/z/main/g/a", b"")
    (note,) = told(CacheConfig(url="cache"), tmp_path)
    assert (
        note == "nothing was tuned: tunegate doctor says what the cache knows of the 2 models here"
    )


@pytest.mark.parametrize("cache", [CacheConfig(mode="off"), CacheConfig(url="gopher://b/p")])
def test_a_cache_that_is_off_or_no_cache_is_no_trouble(cache: CacheConfig, tmp_path: Path) -> None:
    assert told(cache, tmp_path) == ()
