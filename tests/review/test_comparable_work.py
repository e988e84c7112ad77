from __future__ import annotations

from pathlib import Path

from tests.support.git_repository import new_repository
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import ModelInput, Revisions
from tunegate.config import Config, ModelConfig
from tunegate.models.reader import GitModelReader
from tunegate.review.compared_work import reshaped, seeded
from tunegate.review.detect import detect
from tunegate.system.git.repository import GitRepository

BATCH, ONE = ModelInput("x", (64, 256)), ModelInput("x", (1, 256))
OPEN = ModelInput("tokens", (1, None))


def test_a_smaller_batch_is_told_with_both_shapes() -> None:
    told = reshaped("m.onnx", (BATCH,), (ONE,))
    assert told is not None
    assert (told.old, told.new, told.counts) == ("x [64, 256]", "x [1, 256]", "now")
    assert told.weakens


def test_a_new_random_operator_with_a_seed_is_told() -> None:
    told = seeded("m.onnx", (), ("RandomUniform",))
    assert told is not None
    assert (told.old, told.new, told.weakens) == ("none", "RandomUniform", True)


def test_one_that_was_there_or_is_gone_is_not() -> None:
    assert seeded("m.onnx", ("Bernoulli", "RandomUniform"), ("RandomUniform",)) is None


def test_another_type_is_told() -> None:
    told = reshaped("m.onnx", *((ModelInput("x", (4,), dtype=each),) for each in ("int64", "int8")))
    assert told is not None
    assert (told.old, told.new) == ("x int64 [4]", "x int8 [4]")


def test_the_order_of_inputs_does_not_count() -> None:
    assert reshaped("m.onnx", (BATCH, OPEN), (OPEN, BATCH)) is None


def test_an_open_dimension_is_a_question_mark() -> None:
    told = reshaped("m.onnx", (), (OPEN,))
    assert told is not None
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
