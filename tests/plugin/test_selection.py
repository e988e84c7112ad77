"""Globs and what the configuration asks of a model."""

from __future__ import annotations

import re
from pathlib import PurePosixPath

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import Revisions
from tunegate.config import Config, ModelConfig, TargetConfig
from tunegate.selection import (
    entry_for,
    judged_as,
    matches,
    needs_of,
    selected,
    shapes_for,
    targets_for,
)

NAMES = st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PLAIN_PATHS = PATHS.filter(lambda path: not re.search(r"[*?\[]", path) and path[:2] != "./")
ODD_GLOBS = st.text(st.sampled_from("ab/*?[]!^-\\.#é&~|(){}+$\n"), max_size=12)

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


@given(PLAIN_PATHS)
def test_a_path_without_wildcards_matches_itself(path: str) -> None:
    assert matches(path, path)


@given(PLAIN_PATHS)
def test_a_leading_dot_slash_changes_nothing(path: str) -> None:
    assert matches(f"./{path}", path)


@given(PLAIN_PATHS, PATHS)
def test_a_path_without_wildcards_matches_nothing_else(path: str, other: str) -> None:
    assert matches(path, other) == (path == other)


@given(PATHS)
def test_two_stars_match_every_path(path: str) -> None:
    assert matches("**", path)
    assert matches("**/*", path)


@given(PATHS)
def test_one_star_stays_in_one_directory(path: str) -> None:
    assert matches("*", path) == ("/" not in path)


@given(PATHS)
def test_a_question_mark_is_one_character_of_a_name(path: str) -> None:
    assert matches("?" * len(path), path) == ("/" not in path)


@given(PATHS)
def test_a_directory_glob_takes_what_lies_in_it_at_any_depth(path: str) -> None:
    assert matches("models/**/*", f"models/{path}")
    assert not matches("models/**/*", f"model/{path}")


@given(ODD_GLOBS, PATHS)
def test_no_glob_is_a_crash(glob: str, path: str) -> None:
    assert matches(glob, path) in {True, False}


@given(ODD_GLOBS)
def test_brackets_never_match_a_slash(glob: str) -> None:
    assert not matches(f"a[{glob.replace(']', '')}x]b", "a/b")


@pytest.mark.parametrize(
    ("glob", "path", "matched"),
    [
        ("models/**/*.onnx", "models/a.onnx", True),
        ("models/**/*.onnx", "models/deep/er/a.onnx", True),
        ("models/*.onnx", "models/deep/a.onnx", False),
        ("**/a.onnx", "a.onnx", True),
        ("models/[ab].onnx", "models/b.onnx", True),
        ("models/[!ab].onnx", "models/b.onnx", False),
        ("models/[!ab].onnx", "models/c.onnx", True),
        ("models/[a-c].onnx", "models/b.onnx", True),
        ("models/[]].onnx", "models/].onnx", True),
        ("models/[z-a].onnx", "models/m.onnx", False),
        ("models/[\\d].onnx", "models/7.onnx", False),
        ("models/[^a].onnx", "models/a.onnx", False),
        ("models/[!z-a].onnx", "models/m.onnx", True),
        ("models/[a-].onnx", "models/-.onnx", True),
        ("models/[a.onnx", "models/[a.onnx", True),
        ("models/a.onnx", "models/axonnx", False),
        ("models/naïve modèle?.onnx", "models/naïve modèle\n.onnx", True),
        ("A.onnx", "a.onnx", False),
    ],
)
def test_globs_are_shell_globs(glob: str, path: str, matched: bool) -> None:
    assert matches(glob, path) is matched


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
    assert shapes_for(CONFIG, "models/a1.onnx") == {"x": (1, 3)}
    assert shapes_for(CONFIG, "models/b.onnx") == {}
    assert shapes_for(CONFIG, "elsewhere.onnx") == {}


def test_a_model_that_is_not_configured_needs_nothing() -> None:
    assert needs_of(CONFIG, "elsewhere.onnx") is None


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
