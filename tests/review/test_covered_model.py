from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import Checkout, new_repository
from tunegate.artifacts.changes import ModelInput, Revisions
from tunegate.config import Accuracy, AccuracyConfig, Config, ModelConfig, TargetConfig
from tunegate.models.reader import GitModelReader
from tunegate.review.covered_model import (
    CoveredModel,
    JudgingEntry,
    NamesInHead,
    judging_entry,
    names_in_head,
)
from tunegate.review.detect import moved_submodules
from tunegate.review.globs import matches
from tunegate.review.input_shapes import ShapeLevel
from tunegate.system.git.repository import GitRepository

WIDE, TINY = {"x": (1, 512)}, {"x": (1, 2)}


def asked(
    old: ModelConfig, new: ModelConfig | None, inputs: tuple[ModelInput, ...] | None = None
) -> JudgingEntry:
    targets = (TargetConfig(name="cpu"), TargetConfig(name="gpu"))
    config = Config(models=(old,), targets=targets)
    return judging_entry(CoveredModel("a[1]/m*.onnx", old, new), config, config, lambda _: inputs)


def entry(**fields: object) -> ModelConfig:
    return ModelConfig(path="**", **fields)  # type: ignore[arg-type]  # a builder


@pytest.mark.parametrize("inputs", [None, (ModelInput("x", (1, None)),)])
def test_tiny_shapes_of_the_head_have_no_effect(inputs: tuple[ModelInput, ...] | None) -> None:
    found = asked(entry(inputs=WIDE), entry(inputs=TINY), inputs)
    assert found.entry.inputs == WIDE
    (told,) = found.changes
    assert (told.key, told.old, told.new) == ("models[].inputs", "{x: [1, 512]}", "{x: [1, 2]}")
    assert (told.effect, told.counts) == ("changed", "once merged")


def test_shapes_that_fit_no_more_are_the_head_s_and_that_is_told() -> None:
    found = asked(entry(inputs=WIDE), entry(inputs=TINY), (ModelInput("x", (1, 2)),))
    assert found.entry.inputs == TINY
    assert [(told.effect, told.counts) for told in found.changes] == [("changed", "now")]


def test_without_an_entry_of_the_head_everything_is_the_base_s() -> None:
    found = asked(entry(inputs=WIDE, targets=("gpu",)), None)
    assert (found.entry.inputs, found.entry.targets) == (WIDE, ("gpu",))
    assert [told.key for told in found.changes] == ["models[].path"]


def test_targets_of_both_count_and_a_new_one_is_stricter() -> None:
    found = asked(entry(targets=("cpu",)), entry(targets=("gpu", "cpu")))
    assert found.entry.targets == ("cpu", "gpu")
    assert [(told.key, told.effect) for told in found.changes] == [
        ("models[].targets", "tightened")
    ]
    swapped = asked(entry(targets=("cpu",)), entry(targets=("gpu",)))
    assert swapped.entry.targets == ("cpu", "gpu")
    assert [told.effect for told in swapped.changes] == ["loosened"]


def test_the_entry_is_for_this_very_path() -> None:
    path = asked(entry(), entry()).entry.path
    assert matches(path, "a[1]/m*.onnx")
    assert not matches(path, "a1/mm.onnx")


LOOSE, TIGHT = AccuracyConfig(max_error=5.0), AccuracyConfig(max_error=1.0)


@pytest.mark.parametrize(
    ("old", "new", "counting", "effect"),
    [
        ("same", LOOSE, "same", "loosened"),
        (LOOSE, "same", "same", "tightened"),
        (TIGHT, LOOSE, TIGHT, "loosened"),
        (LOOSE, TIGHT, TIGHT, "tightened"),
    ],
)
def test_the_stricter_budget_of_accuracy_counts(
    old: Accuracy, new: Accuracy, counting: Accuracy, effect: str
) -> None:
    found = asked(entry(accuracy=old), entry(accuracy=new))
    assert found.entry.accuracy == counting
    assert [told.effect for told in found.changes] == [effect]


X = ModelInput("x", (None, 8), dtype="float32")
MASK = ModelInput("mask", (None,), dtype="int64")


def called(name: str, value: ModelInput, dtype: str | None = None) -> ModelInput:
    return ModelInput(name, value.dimensions, dtype=dtype or value.dtype)


@pytest.mark.parametrize(
    ("head", "renamed", "lost", "new"),
    [
        ((X, MASK), {}, set(), set()),
        ((X,), {}, {"mask"}, set()),
        ((X, called("length", MASK)), {"mask": "length"}, set(), {"length"}),
        ((X, called("length", MASK, "int32")), {"mask": "length"}, set(), {"length"}),
        ((X, MASK, called("other", MASK)), {}, set(), {"other"}),
        ((X, called("wide", X)), {}, {"mask"}, {"wide"}),
        ((called("mask", X), called("x", MASK)), {"x": "mask", "mask": "x"}, set(), {"x", "mask"}),
    ],
)
def test_an_input_is_the_same_by_its_name_or_else_by_what_it_takes(
    head: tuple[ModelInput, ...], renamed: dict[str, str], lost: set[str], new: set[str]
) -> None:
    assert names_in_head((X, MASK), head) == NamesInHead(renamed, frozenset(lost), frozenset(new))


def test_of_several_that_are_renamed_those_of_one_type_come_first() -> None:
    head = (called("a", X, "float16"), called("b", X))
    assert names_in_head((X,), head).renamed == {"x": "b"}


def test_what_is_said_of_the_base_is_said_under_the_names_of_the_head() -> None:
    names = NamesInHead({"x": "z"}, lost=frozenset({"mask"}))
    level = ShapeLevel(where="w", dims={"n": 1}, shapes={"x": (1,), "mask": (2,), "y": (3,)})
    assert names.level(level) == ShapeLevel(where="w", dims={"n": 1}, shapes={"z": (1,), "y": (3,)})
    assert names.inputs((X, MASK)) == (called("z", X),)
    assert names.gone_names == {"x", "mask"}


def test_of_a_model_that_nobody_can_read_nothing_is_renamed() -> None:
    assert names_in_head(None, (X,)) == names_in_head((X,), None) == NamesInHead()


@st.composite
def inputs(draw: st.DrawFn) -> tuple[ModelInput, ...]:
    names = draw(st.lists(st.sampled_from("abcd"), unique=True))
    ranks = st.integers(0, 2).map(lambda rank: (None,) * rank)
    return tuple(ModelInput(name, draw(ranks), dtype=draw(st.sampled_from("fi"))) for name in names)


@given(inputs(), inputs())
def test_every_input_is_kept_renamed_lost_or_new_and_two_never_become_one(
    base: tuple[ModelInput, ...], head: tuple[ModelInput, ...]
) -> None:
    names = names_in_head(base, head)
    after = [each.name for each in names.inputs(base)]
    assert len({*after}) == len(after) == len(base) - len(names.lost)
    assert {*after} <= {each.name for each in head}
    assert {*names.renamed.values()} <= names.new
    backwards = names.backwards
    assert backwards.renamed == {now: was for was, now in names.renamed.items()}
    assert backwards.inputs(names.inputs(base)) == tuple(
        each for each in base if each.name not in names.lost
    )


# Models in a submodule are not checked, and a change that moves one is told so.

OLD, NEW = "1" * 40, "2" * 40


def submodule_at(project: Checkout, commit: str) -> str:
    """The commit of the project that has the submodule there."""
    entry = f"160000,{commit},shared/models"
    project.git("update-index", "--add", "--cacheinfo", entry)
    project.git("commit", "-q", "-m", "a submodule")
    return project.git("rev-parse", "HEAD")


def notes(project: Checkout, base: str | None, head: str) -> list[str]:
    reader = GitModelReader(GitRepository(project.path))
    return [*moved_submodules(reader, Revisions(base=base, head=head, reason="given"))]


def test_a_submodule_that_moves_is_named(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    base, head = submodule_at(project, OLD), submodule_at(project, NEW)
    assert notes(project, base, head) == [
        (
            "the submodule shared/models is at another commit (222222222222, before 111111111111), "
            "and models in it are not checked: gate them with --repository shared/models "
            "--base 111111111111 --head 222222222222"
        )
    ]


def test_a_new_submodule_is_named_and_one_that_stays_is_not(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    base, head = project.commit({"a": b"a"}), submodule_at(project, OLD)
    (said,) = notes(project, base, head)
    assert notes(project, None, head) == [said]
    assert said.startswith("the submodule shared/models is new, at commit 111111111111, and ")
    assert said.endswith("gate them with --repository shared/models --no-base")
    assert notes(project, head, head) == []
