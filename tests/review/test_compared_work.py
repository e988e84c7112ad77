from pathlib import Path

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.support.git_repository import new_repository
from tests.support.measured_cells import CELL, MODEL, make_build, make_builds, make_version
from tests.support.models.outlines import Outlines
from tests.support.present import present
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.builds import CellCandidates
from tunegate.artifacts.changes import ModelInput, Revisions
from tunegate.config import Config, ModelConfig, ProfileConfig, WatchConfig
from tunegate.measure.choose_runtime import (
    NOTHING_FIXED,
    Fixed,
    replace_builds,
    restrict_candidates,
)
from tunegate.models.reader import GitModelReader
from tunegate.review.base_rules import merged_watch, watch_changes
from tunegate.review.compared_work import SEEDED, AskedWork, inputs_change, operators_change
from tunegate.review.detect import detect
from tunegate.system.git.repository import GitRepository

BATCH, ONE = ModelInput("x", (64, 256)), ModelInput("x", (1, 256))
OPEN = ModelInput("tokens", (1, None))


def test_a_smaller_batch_is_told_with_both_shapes() -> None:
    told = present(inputs_change("m.onnx", (BATCH,), (ONE,)))
    assert (told.old, told.new, told.counts) == ("x [64, 256]", "x [1, 256]", "now")
    assert told.weakens


@pytest.mark.parametrize(
    ("before", "after", "shown"),
    [
        ((), ("RandomUniform 1.0",), "RandomUniform 1.0"),
        (("RandomUniform 1.0",), ("RandomUniform 2.0",), "RandomUniform 2.0"),
        (("RandomUniform 1.0",), ("RandomUniform 1.0",) * 2, "RandomUniform 1.0 x2"),
    ],
)
def test_a_new_random_operator_with_a_seed_and_another_seed_are_told(
    before: tuple[str, ...], after: tuple[str, ...], shown: str
) -> None:
    told = present(operators_change(SEEDED, "m.onnx", before, after))
    assert (told.old, told.new) == (", ".join(before) or "none", shown)
    assert told.weakens


def test_one_that_was_there_or_is_gone_is_not() -> None:
    assert (
        operators_change(
            SEEDED, "m.onnx", ("Bernoulli 1.0", "RandomUniform 2.0"), ("RandomUniform 2.0",)
        )
        is None
    )


def test_another_type_is_told() -> None:
    told = present(
        inputs_change(
            "m.onnx", *((ModelInput("x", (4,), dtype=each),) for each in ("int64", "int8"))
        )
    )
    assert (told.old, told.new) == ("x int64 [4]", "x int8 [4]")


def test_the_order_of_inputs_does_not_count() -> None:
    assert inputs_change("m.onnx", (BATCH, OPEN), (OPEN, BATCH)) is None


def test_an_open_dimension_is_a_question_mark() -> None:
    told = present(inputs_change("m.onnx", (), (OPEN,)))
    assert (told.old, told.new) == ("none", "tokens [1, ?]")


def test_detecting_tells_it(tmp_path: Path) -> None:
    project = new_repository(tmp_path / "project")
    base = project.commit({"m.onnx": matmul_model().SerializeToString()})
    head = project.commit({"m.onnx": matmul_model(rows=1).SerializeToString()})
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    reader = GitModelReader(GitRepository(project.path))
    (told,) = detect(reader, Revisions(base=base, head=head), config, config).policy_changes
    assert told.key == "inputs of the model"
    assert (told.old, told.new) == ("x float32 [16, 16]", "x float32 [1, 16]")


BEFORE, AFTER = make_version("b"), make_version("h")
ASKED_WORK_OPEN = Outlines(None, 8, symbols=("batch", ""))


def config(*, batch: int = 1, covers: str = "**", **profiles: int) -> Config:
    named = {name: ProfileConfig(dims={"batch": size}) for name, size in profiles.items()}
    return Config(models=(ModelConfig(path=covers, profiles=named),), dims={"batch": batch})


def former(old: Config, new: Config, name: str, reader: Outlines = ASKED_WORK_OPEN) -> str | None:
    return AskedWork(reader, new, old).former_name(name, AFTER, BEFORE)


def test_a_profile_is_itself_by_its_name() -> None:
    assert former(config(a=1), config(a=2), f"{MODEL}@a") == f"{MODEL}@a"


def test_a_profile_of_another_name_is_itself_by_its_shapes() -> None:
    assert former(config(a=4), config(b=4), f"{MODEL}@b") == f"{MODEL}@a"
    assert former(config(batch=4), config(b=4), f"{MODEL}@b") == MODEL
    assert former(config(a=4), config(b=5), f"{MODEL}@b") is None
    assert former(config(a=4), config(b=4), f"{MODEL}@b", Outlines()) is None


def test_a_model_that_was_not_covered_had_every_profile() -> None:
    assert former(config(covers="no"), config(b=4), f"{MODEL}@b") == f"{MODEL}@b"


def test_only_other_shapes_are_another_question() -> None:
    by_shape = Config(models=(ModelConfig(path="**", inputs={"x": (4, 8)}),))
    for new, is_changed in ((config(batch=4), False), (config(batch=5), True)):
        asked = AskedWork(ASKED_WORK_OPEN, new, by_shape)
        assert asked.is_changed(MODEL, MODEL, AFTER) is is_changed
    assert AskedWork(Outlines(), config(batch=4), by_shape).is_changed(MODEL, MODEL, AFTER)


TVM = make_build("tvm")
ONNX_RUNTIME = msgspec.structs.replace(make_build("ort"), runtime="onnxruntime")
BOTH = CellCandidates(cell=CELL, base=(TVM, ONNX_RUNTIME), head=(TVM, ONNX_RUNTIME))


def test_where_nothing_is_fixed_everything_stays() -> None:
    assert restrict_candidates([BOTH], NOTHING_FIXED) == (BOTH,)
    chosen = make_builds(TVM, ONNX_RUNTIME)
    assert replace_builds([chosen], NOTHING_FIXED) == (chosen,)


def test_a_side_keeps_the_builds_of_the_runtime_that_is_wanted_of_it() -> None:
    (found,) = restrict_candidates([BOTH], Fixed(runtimes={"head": "onnxruntime"}))
    assert (found.base, found.head) == (BOTH.base, (ONNX_RUNTIME,))
    (found,) = restrict_candidates([BOTH], Fixed(runtimes={"base": "tvm"}))
    assert (found.base, found.head) == ((TVM,), BOTH.head)


def test_a_build_that_was_given_takes_the_place_of_the_one_that_was_chosen() -> None:
    given = make_build("given")
    (found,) = replace_builds([make_builds(TVM, ONNX_RUNTIME)], Fixed(builds={"base": given}))
    assert (found.base, found.head) == (given, ONNX_RUNTIME)
    (found,) = replace_builds([make_builds(TVM, ONNX_RUNTIME)], Fixed(builds={"head": given}))
    assert (found.base, found.head) == (TVM, given)


# Which lock files are watched.

globs = st.lists(st.sampled_from(["a.txt", "b.txt", "c.txt"]), unique=True).map(tuple)
indexes = st.sampled_from([(), ("https://a.example",), ("https://b.example",)])
watches = st.builds(WatchConfig, files=globs, indexes=indexes)


@given(watches, watches)
def test_the_head_adds_files_and_no_place_of_packages(base: WatchConfig, head: WatchConfig) -> None:
    judging = merged_watch(base, head)
    assert set(judging.files) == {*base.files, *head.files}
    assert judging.indexes == base.indexes


@given(watches, watches)
def test_every_difference_is_told_and_only_more_files_count_at_once(
    base: WatchConfig, head: WatchConfig
) -> None:
    told = list(watch_changes(base, head))
    assert bool(told) == (set(base.files) != set(head.files) or base.indexes != head.indexes)
    for change in told:
        is_new_file = change.key == "watch.files" and change.old == "not set"
        assert (change.counts == "now") == is_new_file == (not change.weakens)
