from __future__ import annotations

from pathlib import Path

import numpy as np

from tests.models.inputs.test_given_values import npy_of
from tests.support.git_repository import new_repository
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import Revisions
from tunegate.config import Config, InputConfig, ModelConfig, ValuesConfig
from tunegate.models.inputs.checked_values import unmerged_value_problems
from tunegate.models.reader import GitModelReader
from tunegate.system.git.repository import GitRepository


def _config(file: str) -> Config:
    inputs = {"x": InputConfig(values=ValuesConfig(file=file))}
    return Config(models=(ModelConfig(path="*.onnx", inputs=inputs),))


def test_only_what_the_change_gives_otherwise_is_held_against_its_models(tmp_path: Path) -> None:
    """What lies on the runner is not opened: nobody merged its name. A model that cannot be read
    has no problem here."""
    checkout = new_repository(tmp_path / "r")
    odd, model = npy_of(np.ones((3, 16), np.float32)), matmul_model().SerializeToString()
    base = checkout.commit({"a.npy": odd, "m.onnx": model, "z.onnx": b"none"})
    head = checkout.commit({"b.npy": odd})
    repository = GitRepository(checkout.path)
    models = GitModelReader(repository).models(head)

    def told(file: str) -> tuple[str, ...]:
        revisions = Revisions(base=base, head=head)
        return unmerged_value_problems(
            repository, revisions, _config(file), _config("a.npy"), models
        )

    assert told("a.npy") == told("/nowhere.npy") == ()
    (problem,) = told("b.npy")
    assert problem.startswith(
        "m.onnx: inputs.x.values: b.npy has shape [3, 16] instead of [16, 16]"
    )
