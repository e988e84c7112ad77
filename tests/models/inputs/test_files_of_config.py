"""What is refused of a change that only says something of files, in real repositories."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.models.inputs.test_given_values import npy_of
from tests.support.git_repository import Checkout, new_repository
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import PolicyChange
from tunegate.errors import ConfigError
from tunegate.project import Project, open_project
from tunegate.settings import Settings

NAME = "tunegate.yaml"
PLAIN = "models: [{path: m.onnx}]\n"
VALUES = "models: [{path: m.onnx, inputs: {x: {values: {file: FILE}}}}]\n"
METRIC = "models: [{path: m.onnx, accuracy: {metric-command: {run: LINE, at-most: 1}}}]\n"
FITS, MISFITS = (npy_of(np.ones(shape, np.float32)) for shape in ((16, 16), (3, 16)))


@pytest.fixture
def checkout(tmp_path: Path) -> Checkout:
    made = new_repository(tmp_path / "r")
    model = matmul_model().SerializeToString()
    files = {"in/x.npy": FITS, "wer.py": b"print(1)", "lib/a.py": b"1"}
    made.commit({NAME: PLAIN.encode(), "m.onnx": model, **files})
    made.git("checkout", "-q", "-b", "change")
    return made


def _project(checkout: Checkout) -> Project:
    return open_project(Settings(repository=checkout.path, base="main"))


def _told(checkout: Checkout) -> tuple[PolicyChange, ...]:
    review = _project(checkout).review(Settings(repository=checkout.path, base="main"))
    return review.changes.policy_changes


@pytest.mark.parametrize(
    ("config", "said"),
    [
        (
            VALUES.replace("FILE", "in/y.npy"),
            "inputs.x.values: in/y.npy: no such file in this revision",
        ),
        (
            METRIC.replace("LINE", "python tools/wer.py"),
            "metric-command: tools/wer.py: no such file",
        ),
        (METRIC.replace("LINE", "tools/wer --fast"), "metric-command: tools/wer: no such file"),
    ],
)
def test_a_file_that_is_not_committed_is_refused_where_only_the_configuration_changes(
    checkout: Checkout, config: str, said: str
) -> None:
    checkout.commit({NAME: config.encode()})
    with pytest.raises(ConfigError, match=said):
        _told(checkout)
    with pytest.raises(ConfigError, match=said) as caught:
        _project(checkout).all_models()
    assert caught.value.about is not None
    assert caught.value.about.key in {"models[0].inputs.x", "models[0].accuracy.metric-command"}


def test_the_nearest_path_is_named(checkout: Checkout) -> None:
    checkout.commit({NAME: VALUES.replace("FILE", "inp/x.npy").encode()})
    with pytest.raises(ConfigError, match=r"correct the path\. Did you mean in/x\.npy\?"):
        _told(checkout)


def test_files_that_are_there_and_words_that_are_none_are_taken(checkout: Checkout) -> None:
    command = "python wer.py --like team/model --lib=lib"
    config = METRIC.replace("LINE", command)
    checkout.commit({NAME: config.encode()})
    assert _told(checkout)


@pytest.mark.parametrize("content", [MISFITS, None])
def test_values_that_the_model_does_not_take_are_refused_before_they_are_merged(
    checkout: Checkout, content: bytes | None
) -> None:
    """The configuration names them, or a file replaces them."""
    checkout.commit({NAME: VALUES.replace("FILE", "in/x.npy").encode()})
    assert _told(checkout)
    checkout.git("branch", "-f", "main")
    checkout.commit({"in/x.npy": content})
    both = r"in/x\.npy has shape \[3, 16\] instead of \[16, 16\]"
    with pytest.raises(ConfigError, match=both if content else r"in/x\.npy: no such file"):
        _told(checkout)


def test_a_file_that_the_base_has_got_since_is_there_once_it_is_merged(checkout: Checkout) -> None:
    checkout.commit({"note.txt": b"the change"})
    checkout.git("checkout", "-q", "main")
    checkout.commit({NAME: VALUES.replace("FILE", "in/y.npy").encode(), "in/y.npy": FITS})
    checkout.git("checkout", "-q", "change")
    review = _project(checkout).review(Settings(repository=checkout.path))
    assert review.changes.policy_changes == ()


def test_what_a_metric_reads_is_a_change_of_policy(checkout: Checkout) -> None:
    config = METRIC.replace("LINE", "python wer.py --lib=lib")
    checkout.commit({NAME: config.encode()})
    checkout.git("branch", "-f", "main")
    checkout.commit({"lib/a.py": b"2", "note.txt": b"more"})
    told = _told(checkout)
    assert [(each.key, each.old.split()[0], each.counts) for each in told] == [
        ("models[].accuracy.metric-command", "lib", "once merged"),
    ]
