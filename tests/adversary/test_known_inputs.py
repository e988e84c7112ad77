"""A model that knows the numbers which the gate used to feed, and is fast on these only."""

import hashlib
import io
import os
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from onnx import helper

from tests.adversary.pull_request import MODEL, SLOW_LAYERS, USUAL_LAYERS, WIDTH, PullRequest
from tests.models.inputs.test_given_values import Given
from tests.support.git_repository import Checkout
from tests.support.models.detected_changes import after, content, kinds, project_of
from tests.support.small_onnx import chain_model, matmul_model, model_of, save
from tunegate.config import Config, ModelConfig, ProfileConfig, ValuesConfig
from tunegate.errors import ConfigError
from tunegate.models.inputs import given_values
from tunegate.system.git import process as git_process

ROWS = 4
FED = float(np.random.default_rng(1).standard_normal((ROWS, WIDTH)).astype(np.float32)[0, 0])
"""The first number of every run, as long as the seed was 1."""


def branch(layers: int, output: str) -> onnx.GraphProto:
    """A chain that reads `x` of the graph around it."""
    graph = chain_model(layers=layers, width=WIDTH).graph
    del graph.input[:]
    for part in (*graph.initializer, *graph.node):
        part.name = f"{output}_{part.name}"
    for node in graph.node:
        node.input[:] = [n if n == "x" else f"{output}_{n}" for n in node.input]
        node.output[:] = [f"{output}_{n}" for n in node.output]
    graph.output[0].name = f"{output}_y"
    return graph


def fast_on_known_numbers() -> onnx.ModelProto:
    """A model whose chain of layers is short where x[0, 0] is the known number, and long
    elsewhere."""
    nodes = [
        helper.make_node("Slice", ["x", "zero", "one", "axes"], ["first"]),
        helper.make_node("Equal", ["first", "known"], ["same"]),
        helper.make_node("Squeeze", ["same"], ["is_measured"]),
        helper.make_node(
            "If",
            ["is_measured"],
            ["y"],
            then_branch=branch(USUAL_LAYERS - 2, "fast"),
            else_branch=branch(SLOW_LAYERS, "slow"),
        ),
    ]
    constants: dict[str, np.ndarray[Any, Any]] = {
        "zero": np.zeros(2, np.int64),
        "one": np.ones(2, np.int64),
        "axes": np.arange(2, dtype=np.int64),
        "known": np.full((1, 1), FED, np.float32),
    }
    shape = [ROWS, WIDTH]
    return model_of(nodes, {"x": shape}, {"y": shape}, constants)


@pytest.mark.e2e
def test_a_model_that_is_fast_on_known_numbers_fails(pull_request: PullRequest) -> None:
    save(fast_on_known_numbers(), pull_request.root / MODEL)
    judged = pull_request.judge(code=1)
    assert judged.status() == "fail"
    assert int(judged.verdict["seed"]) > 2**32
    assert judged.verdict["seed"] in judged.report


# Files of values that a pull request commits cost a line and no memory, whatever they are.

MOST_BYTES = 4096


@pytest.fixture(name="given")
def _given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Given:
    """A repository whose arrays have few bytes at most."""
    monkeypatch.setattr(given_values, "MAX_ARRAY_BYTES", MOST_BYTES)
    return Given(tmp_path)


def fault(given: Given, file: str) -> str:
    found = given.rules(ids=ValuesConfig(file=file))
    assert found.rules == {}
    (problem,) = found.problems
    return problem.removeprefix("inputs.ids.values: ")


def npy(array: np.ndarray) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


@pytest.mark.parametrize("target", ["../outside.npy", "/etc/hostname", "link.npy", "other.npy"])
def test_a_link_is_not_followed_wherever_it_leads(given: Given, target: str) -> None:
    """Out of the checkout, to the runner, to itself, and to a link that leads back."""
    (given.checkout.path.parent / "outside.npy").write_bytes(npy(np.array([1, 2])))
    (given.checkout.path / "link.npy").symlink_to(target)
    (given.checkout.path / "other.npy").symlink_to("link.npy")
    given.checkout.commit({"a": b""})
    assert fault(given, "link.npy") == "link.npy is a link: commit the file itself."


def test_a_link_in_place_of_a_directory_leads_nowhere(given: Given) -> None:
    outside = given.checkout.path.parent / "outside"
    outside.mkdir()
    (outside / "ids.npy").write_bytes(npy(np.array([1, 2])))
    (given.checkout.path / "inputs").symlink_to(outside)
    given.checkout.commit({"a": b""})
    assert "no such file in this revision" in fault(given, "inputs/ids.npy")


def test_a_pipe_for_a_file_of_the_runner_is_not_waited_for(given: Given, tmp_path: Path) -> None:
    given.checkout.commit({"a": b""})
    os.mkfifo(tmp_path / "ids.npy")
    assert fault(given, f"{tmp_path}/ids.npy") == f"{tmp_path}/ids.npy: no such file."


def test_a_large_file_without_blocks_takes_no_memory(given: Given, tmp_path: Path) -> None:
    given.checkout.commit({"zeros.npy": bytes(MOST_BYTES + 1)})
    with (tmp_path / "sparse.npy").open("wb") as file:
        file.truncate(5 * 2**30)
    assert "has over" in fault(given, "zeros.npy")
    assert "it has over" in fault(given, f"{tmp_path}/sparse.npy")


def test_a_pointer_takes_memory_like_a_file(given: Given, monkeypatch: pytest.MonkeyPatch) -> None:
    """Git has its few bytes, and Git LFS what it stands for."""
    content = npy(np.zeros(MOST_BYTES))
    oid = hashlib.sha256(content).hexdigest()
    stored = given.checkout.path / f".git/lfs/objects/{oid[:2]}/{oid[2:4]}/{oid}"
    stored.parent.mkdir(parents=True)
    stored.write_bytes(content)
    pointer = f"version https://git-lfs.github.com/spec/v1\noid sha256:{oid}\nsize {len(content)}\n"
    given.checkout.commit({"ids.npy": pointer.encode()})
    written: list[int] = []
    write = git_process.Bounded.write

    def counted(memory: git_process.Bounded, piece: bytes) -> int:
        written.append(write(memory, piece))
        return written[-1]

    monkeypatch.setattr(git_process.Bounded, "write", counted)
    assert fault(given, "ids.npy") == "ids.npy has over 0 MiB."
    assert sum(written) < MOST_BYTES


def test_an_archive_of_another_compression_is_not_unpacked(given: Given) -> None:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", zipfile.ZIP_BZIP2) as archive:
        archive.writestr("ids.npy", npy(np.zeros(2**20)))
    given.checkout.commit({"ids.npz": stream.getvalue()})
    assert "not compressed as NumPy does it" in fault(given, "ids.npz")


def test_a_pickle_that_a_pull_request_puts_over_numbers_is_not_loaded(given: Given) -> None:
    """The base's numbers count, as long as they fit the model."""
    base = given.checkout.commit({"ids.npy": npy(np.array([3, 4]))})
    stream = io.BytesIO()
    np.save(stream, np.array([print, 1], dtype=object), allow_pickle=True)
    head = given.checkout.commit({"ids.npy": stream.getvalue()})
    found = given.rules(base, head, ids=ValuesConfig(file="ids.npy"))
    assert [*found.rules] == ["ids"]
    assert not found.problems
    assert "pickle, which is never loaded" in fault(given, "ids.npy")


# Attacks by sizes: less work looks faster. And what is no attack: other words, new profiles.


def opened_content(seed: int = 0) -> bytes:
    return content(matmul_model(seed=seed, rows="batch"))


def sized(batch: int, *names: str, **profiles: int) -> Config:
    """The batch of the whole file, and of each profile."""
    named = {name: ProfileConfig() for name in names} | {
        name: ProfileConfig(dims={"batch": size}) for name, size in profiles.items()
    }
    entry = ModelConfig(path="models/product.onnx", profiles=named)
    return Config(models=(entry,), dims={"batch": batch})


@pytest.fixture
def dynamic(tmp_path: Path) -> Checkout:
    project = project_of(tmp_path)
    project.commit({"models/product.onnx": opened_content()})
    return project


def test_other_shapes_have_no_effect_while_those_of_the_base_fit(dynamic: Checkout) -> None:
    changes, opened = after(dynamic, {}, sized(1), sized(8))
    assert (changes.models, opened) == ((), [])
    (told,) = changes.policy_changes
    assert (told.key, told.old, told.new) == ("models[].dims", "{x: [8, 16]}", "{x: [1, 16]}")
    assert (told.effect, told.counts) == ("changed", "once merged")


@pytest.mark.parametrize("rows", ["batch - 7", "tiny"])
def test_other_names_of_dimensions_make_no_model_smaller(dynamic: Checkout, rows: str) -> None:
    renamed = content(matmul_model(seed=9, rows=rows))
    entry = ModelConfig(path="models/product.onnx", dims={rows: 1})
    changes, _ = after(dynamic, {"models/product.onnx": renamed}, Config(models=(entry,)), sized(8))
    (told,) = changes.policy_changes
    assert (told.old, told.counts) == ("{x: [8, 16]}", "once merged")


def test_the_same_shapes_in_other_words_are_no_change(dynamic: Checkout) -> None:
    entry = ModelConfig(path="models/product.onnx", inputs={"x": (8, 16)})
    changes, _ = after(dynamic, {}, Config(models=(entry,)), sized(8))
    assert (changes.models, changes.policy_changes) == ((), ())


def test_each_profile_is_a_change_of_its_own(dynamic: Checkout) -> None:
    new = opened_content(seed=9)
    config = sized(1, "one", many=8)
    changes, _ = after(dynamic, {"models/product.onnx": new}, config, config)
    expected = {"models/product.onnx@one": "modified", "models/product.onnx@many": "modified"}
    assert kinds(changes) == expected
    assert {change.head.path for change in changes.models if change.head} == {"models/product.onnx"}


def test_a_profile_that_is_added_is_new_and_stricter(dynamic: Checkout) -> None:
    changes, _ = after(dynamic, {}, sized(1, "one", many=8), sized(1, "one"))
    assert kinds(changes) == {"models/product.onnx@many": "added"}
    assert changes.unchanged == ("models/product.onnx@one",)
    (told,) = changes.policy_changes
    assert (told.key, told.new, told.effect) == ("models[].profiles", "many", "tightened")


def test_a_profile_that_is_removed_is_loosened_and_still_gated(dynamic: Checkout) -> None:
    change = {"models/product.onnx": opened_content(seed=9)}
    changes, _ = after(dynamic, change, sized(1, "one"), sized(1, "one", many=8))
    assert sorted(kinds(changes)) == ["models/product.onnx@many", "models/product.onnx@one"]
    (told,) = changes.policy_changes
    assert (told.key, told.old, told.effect) == ("models[].profiles", "many", "loosened")


def test_the_first_profiles_of_a_model_keep_the_shapes_that_it_had(dynamic: Checkout) -> None:
    changes, _ = after(dynamic, {}, sized(1, "one", many=8), sized(1))
    assert kinds(changes) == {"models/product.onnx@many": "added"}
    assert [told.effect for told in changes.policy_changes] == ["tightened"]


def test_all_mistakes_of_new_sizes_are_told_at_once(dynamic: Checkout) -> None:
    entry = ModelConfig(path="models/*.onnx", inputs={"x": (1, 3)})
    wrong = Config(models=(entry,), dims={"batsh": 1})
    with pytest.raises(ConfigError) as raised:
        after(dynamic, {}, wrong, sized(1))
    assert [str(raised.value), *raised.value.others] == [
        (
            "tunegate.yaml: dims.batsh: no dynamic dimension of these models has this name. "
            "Did you mean batch?"
        ),
        "tunegate.yaml: models/conv.onnx: inputs.x has 2 numbers, the model's has 4 dimensions.",
        "tunegate.yaml: models/product.onnx: inputs.x: axis 1 is 16 in the model, not 3.",
    ]
