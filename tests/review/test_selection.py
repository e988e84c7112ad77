"""Globs and what the configuration asks of a model."""

from __future__ import annotations

import time
from pathlib import PurePosixPath

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import Revisions
from tunegate.config import AccuracyConfig, Config, ModelConfig, TargetConfig
from tunegate.review.globs import matches
from tunegate.review.model_settings import (
    entry_for,
    judged_as,
    needs_of,
    selected,
    shapes_for,
    targets_for,
)

NAMES = st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)

CONFIG = Config(
    models=(
        ModelConfig(path="models/a*.onnx", inputs={"x": (1, 3)}, targets=("fast",)),
        ModelConfig(path="models/**"),
    ),
    targets=(TargetConfig(name="slow"), TargetConfig(name="fast", threads=4)),
)


def test_what_came_since_a_release_has_a_margin_of_its_own() -> None:
    usual = Revisions(base="b", head="h")
    since = Revisions(base="b", head="h", release="v1")
    assert judged_as(CONFIG, usual) == CONFIG
    judged = judged_as(CONFIG, since)
    assert judged.gate.margin_percent == CONFIG.gate.release_margin_percent
    assert msgspec.structs.replace(judged, gate=CONFIG.gate) == CONFIG


@given(st.lists(PATHS, max_size=8))
def test_selected_paths_are_sorted_and_among_those_given(paths: list[str]) -> None:
    chosen = selected(CONFIG, [*paths, *(f"models/{path}" for path in paths)])
    assert list(chosen) == sorted(chosen)
    assert {PurePosixPath(path).parts[0] for path in chosen} <= {"models"}


def test_the_first_entry_that_matches_decides() -> None:
    assert entry_for(CONFIG, "models/a1.onnx") is CONFIG.models[0]
    assert entry_for(CONFIG, "models/b.onnx") is CONFIG.models[1]
    assert entry_for(CONFIG, "elsewhere/a1.onnx") is None


def test_a_model_has_its_own_targets_or_all_of_them() -> None:
    assert targets_for(CONFIG, "models/a1.onnx") == ("fast",)
    assert targets_for(CONFIG, "models/b.onnx") == ("slow", "fast")
    assert targets_for(CONFIG, "elsewhere.onnx") == ()


def test_shapes_come_from_the_entry() -> None:
    assert shapes_for(CONFIG, "models/a1.onnx", None).shapes == {"x": (1, 3)}
    assert shapes_for(CONFIG, "models/b.onnx", None).shapes == {}
    assert shapes_for(CONFIG, "elsewhere.onnx", None).shapes == {}


def test_a_model_that_is_not_configured_needs_nothing() -> None:
    assert needs_of(CONFIG, "elsewhere.onnx") is None


def test_a_changed_budget_of_accuracy_changes_what_a_model_needs() -> None:
    before, after = (
        Config(models=(ModelConfig(path="**", accuracy=AccuracyConfig(max_error=error)),))
        for error in (5.0, 1.0)
    )
    assert needs_of(before, "m.onnx") != needs_of(after, "m.onnx")


def test_a_target_the_model_does_not_use_changes_none_of_its_needs() -> None:
    slow, fast = CONFIG.targets
    changed = (msgspec.structs.replace(slow, threads=2), fast)
    after = msgspec.structs.replace(CONFIG, targets=changed)
    assert needs_of(after, "models/a1.onnx") == needs_of(CONFIG, "models/a1.onnx")
    assert needs_of(after, "models/b.onnx") != needs_of(CONFIG, "models/b.onnx")


def test_what_a_target_costs_or_runs_on_changes_no_needs() -> None:
    slow, fast = CONFIG.targets
    changed = (msgspec.structs.replace(slow, usd_per_hour=1.0, runner=("linux",)), fast)
    after = msgspec.structs.replace(CONFIG, targets=changed)
    assert needs_of(after, "models/b.onnx") == needs_of(CONFIG, "models/b.onnx")


def test_a_shape_of_an_input_is_a_need() -> None:
    entry = msgspec.structs.replace(CONFIG.models[0], inputs={"x": (2, 3)})
    after = msgspec.structs.replace(CONFIG, models=(entry, CONFIG.models[1]))
    assert needs_of(after, "models/a1.onnx") != needs_of(CONFIG, "models/a1.onnx")


@given(
    st.lists(st.sampled_from(["a.onnx", "./a.onnx", "b.onnx", "*.onnx", "b*", "[ab].onnx", "**"])),
    st.sampled_from(["a.onnx", "b.onnx", "c.onnx", "d/a.onnx"]),
)
def test_the_first_entry_that_matches_counts_however_it_is_found(
    globs: list[str], path: str
) -> None:
    entries = tuple(ModelConfig(path=glob) for glob in globs)
    config = Config(models=entries)
    expected = next((entry for entry in entries if matches(entry.path, path)), None)
    assert entry_for(config, path) is expected


def test_thousands_of_entries_for_one_path_each_are_no_work() -> None:
    paths = [f"models/{number}.onnx" for number in range(20_000)]
    config = Config(models=tuple(ModelConfig(path=path) for path in paths))
    started = time.process_time()
    assert len(selected(config, paths)) == len(paths)
    assert time.process_time() - started < 5
