"""Globs: what they match, and that looking is cheap whatever they are."""

import re
import time
from collections.abc import Iterator
from pathlib import PurePosixPath

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.artifacts.changes import Revisions
from tunegate.config import AccuracyConfig, Config, ModelConfig, TargetConfig
from tunegate.review.globs import is_glob, literal, matches, numbered_path, unmatched_paths
from tunegate.review.model_settings import (
    entry_for,
    judged_as,
    matching_paths,
    needs_of,
    shapes_for,
    targets_for,
)

NAMES = st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PLAIN_PATHS = PATHS.filter(lambda path: not is_glob(path) and path[:2] != "./")
ODD_GLOBS = st.text(st.sampled_from("ab/*?[]!^-\\.#é&~|(){}+$\n"), max_size=12)
SHORT_PATHS = st.text(st.sampled_from("ab/[]!-\\."), max_size=8)


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
        ("models/**/**", "models/deep/a.onnx", True),
        ("models/**/**", "other/a.onnx", False),
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


@given(ODD_GLOBS, SHORT_PATHS)
def test_a_glob_means_what_its_regular_expression_does(glob: str, path: str) -> None:
    expression = "".join(as_expression(glob.removeprefix("./")))
    assert matches(glob, path) is bool(re.fullmatch(expression, path, re.DOTALL))


def as_expression(glob: str) -> Iterator[str]:
    """A second opinion, that backtracks."""
    wildcard = re.compile(r"(\*\*/|\*\*|\*|\?|\[[!^]?+(?:\][^\]]*|[^\]]+)\])")
    plain = {"**/": "(?:.*/)?", "**": ".*", "*": "[^/]*", "?": "[^/]"}
    for part in wildcard.split(glob):
        is_bracket = part.startswith("[") and wildcard.fullmatch(part)
        yield one_of(part[1:-1]) if is_bracket else plain.get(part, re.escape(part))


def one_of(members: str) -> str:
    is_excluding = members[0] in "!^"
    pieces = []
    for low, high, one in re.findall(r"(.)-(.)|(.)", members[is_excluding:], re.DOTALL):
        if one or low <= high:
            pieces.append(re.escape(one) if one else f"{re.escape(low)}-{re.escape(high)}")
    if is_excluding:
        return f"[^/{''.join(pieces)}]"
    return f"(?!/)[{''.join(pieces)}]" if pieces else "(?!)"


class CountedPath(str):
    """A path that counts how many of its characters were read."""

    looked_at = 0

    def __iter__(self) -> Iterator[str]:
        for character in super().__iter__():
            CountedPath.looked_at += 1
            yield character


@pytest.mark.parametrize("wildcard", ["**", "*", "**/", "?*"])
def test_a_glob_that_would_backtrack_looks_at_each_character_once(wildcard: str) -> None:
    CountedPath.looked_at = 0
    path = CountedPath("a" * 3000)
    assert not matches(f"{wildcard}a" * 1000 + "b", path)
    assert CountedPath.looked_at <= len(path)


@given(PATHS | SHORT_PATHS)
def test_a_literal_glob_matches_its_path_alone(path: str) -> None:
    assert matches(literal(path), path) or path.startswith("./")
    assert not matches(literal(path), f"{path}a")


@pytest.mark.parametrize(
    ("glob", "path", "family", "version"),
    [
        ("models/*/{version}/m.onnx", "models/enc/2/m.onnx", "models/enc/{version}/m.onnx", (2,)),
        ("models/*/{version}/m.onnx", "models/enc/V2/m.onnx", "models/enc/{version}/m.onnx", (2,)),
        ("models/{version}/*.onnx", "models/v2.0-rc1/m.onnx", "models/{version}/m.onnx", (2,)),
        ("m/a_{version}.onnx", "m/a_1.2b3.onnx", "m/a_{version}.onnx", (1, 2)),
        ("./m/*-v{version}.onnx", "m/a-8-v1.10.onnx", "m/a-8-v{version}.onnx", (1, 10)),
        ("**/{version}/*.onnx", "a/7/b/010/c.onnx", "a/7/b/{version}/c.onnx", (10,)),
        ("{version}*.onnx", "3.onnx", "{version}.onnx", (3,)),
        ("net-{version}*.onnx", "net-2-a100.onnx", "net-{version}-a100.onnx", (2,)),
    ],
)
def test_a_version_in_a_glob_is_a_number(
    glob: str, path: str, family: str, version: tuple[int, ...]
) -> None:
    assert matches(glob, path)
    found = numbered_path(glob, path)
    assert found is not None
    assert (found.family, found.version.numbers) == (family, version)


def test_versions_are_ordered_as_people_read_them() -> None:
    names = ["0", "1", "1.2-dev", "1.2a1", "1.2-beta.2", "1.2rc1", "v1.2-rc10", "1.2", "v2", "010"]
    names.append(f"{'0' * 30}11")
    found = [numbered_path("m/{version}/x.onnx", f"m/{name}/x.onnx") for name in names]
    assert None not in found
    versions = [each.version for each in found if each is not None]
    assert versions == sorted(set(versions))


def test_a_number_that_is_written_otherwise_is_the_same_version() -> None:
    names = ("1", "01", "1.0", "v1", "V01.0.0")
    assert len({numbered_path("m/{version}/x", f"m/{name}/x") for name in names}) == 1


@pytest.mark.parametrize(
    ("glob", "path"),
    [
        ("models/{version}/m.onnx", "models/2b/m.onnx"),
        ("models/{version}/m.onnx", "models//m.onnx"),
        ("models/{version}/m.onnx", "models/1/2/m.onnx"),
        ("models/{version}.onnx", "models/latest.onnx"),
    ],
)
def test_what_is_no_number_is_no_version(glob: str, path: str) -> None:
    assert not matches(glob, path)


def test_a_path_of_many_numbers_costs_little() -> None:
    started = time.process_time()
    assert not matches("**/{version}/x.onnx", "1/" * 2000 + "m.onnx")
    assert time.process_time() - started < 2


def test_a_path_with_the_word_itself_is_no_pattern() -> None:
    path = "models/{version}/m.onnx"
    assert matches(literal(path), path)
    assert not matches(literal(path), "models/1/m.onnx")


UNMATCHED_PATHS_NAMES = st.lists(
    st.text("abc", min_size=1, max_size=3), min_size=1, max_size=6, unique=True
)


@given(UNMATCHED_PATHS_NAMES, UNMATCHED_PATHS_NAMES)
def test_each_path_without_a_model_has_a_line_and_no_other_has(
    written: list[str], there: list[str]
) -> None:
    config = Config(models=tuple(ModelConfig(path=f"m/{name}.onnx") for name in written))
    lines = [*unmatched_paths(config, [f"m/{name}.onnx" for name in there], "the revision")]
    named = [line.split()[1] for line in lines]
    assert named == [f"m/{name}.onnx" for name in written if name not in there]


def test_a_path_with_a_slip_is_told_with_the_model_that_was_meant() -> None:
    config = Config(models=(ModelConfig(path="models/iris_forst.onnx"),))
    paths = ["models/captcha.onnx", "models/iris_forest.onnx"]
    (line,) = unmatched_paths(config, paths, "commit 1a2b3c4")
    assert line == (
        "path models/iris_forst.onnx matches no ONNX file of commit 1a2b3c4. "
        "Did you mean models/iris_forest.onnx? "
        "Otherwise commit the model (also when it is stored by LFS or DVC)."
    )


@pytest.mark.parametrize(
    ("glob", "meant"),
    [
        ("modles/*.onnx", "models/*.onnx"),
        ("models/*.onx", "models/*.onnx"),
        ("models/*_v3.onnx", "models/*.onnx"),
        ("Models/net*.onnx", "models/net*.onnx"),
        ("*/net.onnx.data", ""),
    ],
)
def test_a_glob_with_a_slip_is_told_with_the_glob_that_was_meant(glob: str, meant: str) -> None:
    """One model in place of a glob would not gate tomorrow's."""
    config = Config(models=(ModelConfig(path=glob),))
    (line,) = unmatched_paths(config, ["models/net.onnx", "z/q/other.onnx"], "the revision")
    assert f"path {glob} matches no ONNX file of the revision; the nearest: models/net" in line
    assert (f"Did you mean {meant}? Otherwise commit the model" in line) == bool(meant)


def test_where_there_is_no_model_that_is_said() -> None:
    """And of many entries only the first few are looked for by likeness, which is slow."""
    config = Config(models=tuple(ModelConfig(path=f"{n}/*.onnx") for n in range(9)))
    line, *_ = unmatched_paths(config, [], "the revision")
    assert "which has none at all. Correct the glob, or commit the model" in line
    lines = unmatched_paths(config, ["m/net.onnx"], "it")
    assert ["nearest" in line for line in lines] == [True] * 5 + [False] * 4


# Globs and what the configuration asks of a model.

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
    chosen = matching_paths(CONFIG, [*paths, *(f"models/{path}" for path in paths)])
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
def test_the_first_matching_entry_counts_however_it_is_found(globs: list[str], path: str) -> None:
    entries = tuple(ModelConfig(path=glob) for glob in globs)
    config = Config(models=entries)
    expected = next((entry for entry in entries if matches(entry.path, path)), None)
    assert entry_for(config, path) is expected


def test_thousands_of_entries_for_one_path_each_are_no_work() -> None:
    paths = [f"models/{number}.onnx" for number in range(20_000)]
    config = Config(models=tuple(ModelConfig(path=path) for path in paths))
    started = time.process_time()
    assert len(matching_paths(config, paths)) == len(paths)
    assert time.process_time() - started < 5
