"""Globs: what they match, and that looking is cheap whatever they are."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.config import Config, ModelConfig
from tunegate.review.globs import literal, matches, numbered_path, unmatched_paths

NAMES = st.text(st.characters(exclude_characters="/", codec="utf-8"), min_size=1)
PATHS = st.lists(NAMES, min_size=1, max_size=4).map("/".join)
PLAIN_PATHS = PATHS.filter(lambda path: not re.search(r"[*?\[]", path) and path[:2] != "./")
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
        ("./m/*-v{version}.onnx", "m/a-8-v1.10.onnx", "m/a-8-v{version}.onnx", (1, 10)),
        ("**/{version}/*.onnx", "a/7/b/010/c.onnx", "a/7/b/{version}/c.onnx", (10,)),
        ("{version}*.onnx", "3.onnx", "{version}.onnx", (3,)),
    ],
)
def test_a_version_in_a_glob_is_a_number(
    glob: str, path: str, family: str, version: tuple[int, ...]
) -> None:
    assert matches(glob, path)
    assert numbered_path(glob, path) == (family, version)


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
    (line,) = unmatched_paths(Config(models=(ModelConfig(path="a/*.onnx"),)), [], "the revision")
    assert "which has none at all. Correct the glob, or commit the model" in line
