import io
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest

from tests.support.git_repository import Checkout, new_repository
from tests.support.graphs import GraphInput, graph_of, node
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import Revisions
from tunegate.artifacts.inputs import Files, GivenFor, GivenRules, InputRule, Integers, Uniform
from tunegate.config import Config, InputConfig, ModelConfig, ValuesConfig
from tunegate.models.inputs.given_values import GivenValues, input_readers
from tunegate.models.reader import GitModelReader
from tunegate.review.named_files import unmerged_value_problems
from tunegate.system.git.repository import GitRepository

IDS, X = GraphInput("ids", (2,), "int64"), GraphInput("x", (3,), "float32")
TEXTS = GraphInput("texts", (2,), "object")


def npy_of(array: Any) -> bytes:
    stream = io.BytesIO()
    np.save(stream, array)
    return stream.getvalue()


class Given:
    """A repository with one model of two inputs, and what is read of it."""

    def __init__(self, at: Path) -> None:
        self.checkout: Checkout = new_repository(at / "repository")
        self.model = at / "model.onnx"
        nodes = [
            node("Cast", "ids", "y", to=1),
            node("Relu", "x", "z"),
            node("Identity", "texts", "t"),
        ]
        onnx.save(graph_of(nodes, [IDS, X, TEXTS], "y z t"), self.model)
        self._into = at / "kept"

        self.former: dict[str, str] = {}
        self.shapes: dict[str, tuple[int, ...]] = {}

    def rules(self, *revisions: str, **values: ValuesConfig) -> GivenRules:
        read = GivenValues(GitRepository(self.checkout.path), self._into)
        found = revisions or (self.checkout.git("rev-parse", "HEAD"),)
        wanted = GivenFor(values=values, shapes=self.shapes, revisions=found, former=self.former)
        return read.rules(self.model, wanted)


@pytest.fixture
def repository(tmp_path: Path) -> Given:
    return Given(tmp_path)


def arrays_of(rule: InputRule) -> list[Any]:
    assert isinstance(rule.values, Files)
    return [np.load(file).tolist() for file in rule.values.files]


def test_a_range_is_of_the_type_of_its_input(repository: Given) -> None:
    repository.checkout.commit({"a": b""})
    found = repository.rules(ids=ValuesConfig(low=1, high=9), x=ValuesConfig(low=-1, high=1.5))
    assert found.problems == ()
    assert found.rules == {
        "ids": InputRule(Integers(1, 9), "given: 1 to 9"),
        "x": InputRule(Uniform(-1.0, 1.5), "given: -1 to 1.5"),
    }


def test_the_file_of_the_first_revision_counts(repository: Given) -> None:
    base = repository.checkout.commit({"in/ids.npy": npy_of(np.array([1, 2]))})
    head = repository.checkout.commit({"in/ids.npy": npy_of(np.array([3, 4]))})
    (rule,) = repository.rules(base, head, ids=ValuesConfig(file="in/ids.npy")).rules.values()
    assert arrays_of(rule) == [[1, 2]]
    assert rule.why == "given: in/ids.npy"


def test_what_was_read_is_not_read_again(repository: Given) -> None:
    read = GivenValues(GitRepository(repository.checkout.path), repository.model.parent / "kept")
    outside = repository.model.with_name("ids.npy")
    outside.write_bytes(npy_of(np.array([1, 2])))
    given = {"ids": ValuesConfig(file=str(outside))}
    wanted = GivenFor(values=given, shapes={}, revisions=())
    found = read.rules(repository.model, wanted)
    outside.unlink()
    assert read.rules(repository.model, wanted) == found
    other = GivenFor(values=given, shapes={"ids": (3,)}, revisions=())
    assert read.rules(repository.model, other) != found


def test_a_file_that_only_the_head_has_is_the_heads(repository: Given) -> None:
    base = repository.checkout.commit({"a": b""})
    head = repository.checkout.commit({"ids.npy": npy_of(np.array([3, 4]))})
    (rule,) = repository.rules(base, head, ids=ValuesConfig(file="./ids.npy")).rules.values()
    assert arrays_of(rule) == [[3, 4]]


def _both(repository: Given, base: bytes, head: bytes, name: str) -> list[Any]:
    """The numbers that the head is run on, of a file that it replaces."""
    revisions = [repository.checkout.commit({name: each}) for each in (base, head)]
    found = repository.rules(*revisions, ids=ValuesConfig(file=name))
    assert found.problems == ()
    return arrays_of(found.rules["ids"])


def test_another_type_makes_no_numbers_of_the_base_easier(repository: Given) -> None:
    base, head = npy_of(np.array([900, 800], np.int32)), npy_of(np.array([0, 0]))
    assert _both(repository, base, head, "ids.npy") == [[900, 800]]


@pytest.mark.parametrize("was", [np.array([1.5, 2]), np.array([1, 2, 3])])
def test_numbers_of_the_base_not_of_this_input_give_way(repository: Given, was: Any) -> None:
    assert _both(repository, npy_of(was), npy_of(np.array([3, 4])), "ids.npy") == [[3, 4]]


def test_another_name_makes_no_numbers_of_the_base_easier(repository: Given) -> None:
    def archive(**arrays: Any) -> bytes:
        stream = io.BytesIO()
        np.savez(stream, **arrays)
        return stream.getvalue()

    repository.former = {"ids": "tokens"}
    base = archive(tokens=np.array([900, 800]), mask=np.array([1, 1]))
    head = archive(ids=np.array([0, 0]), mask=np.array([1, 1]))
    assert _both(repository, base, head, "in.npz") == [[900, 800]]


def test_cases_are_files_or_numbers(repository: Given) -> None:
    repository.checkout.commit({"one.npy": npy_of(np.array([1, 2]))})
    (rule,) = repository.rules(ids=ValuesConfig(cases=("one.npy", 7))).rules.values()
    assert arrays_of(rule) == [[1, 2], [7, 7]]


def test_all_that_is_wrong_is_told_at_once_a_line_each(repository: Given) -> None:
    shape, dtype = npy_of(np.array([[1, 2]])), npy_of(np.zeros(3))
    pickled = npy_of(np.array([1, 2]).astype(object).astype(str))
    repository.checkout.commit({"shape.npy": shape, "type.npy": dtype, "text.npy": pickled})
    problems = repository.rules(
        ids=ValuesConfig(file="shape.npy"),
        x=ValuesConfig(file="type.npy"),
        texts=ValuesConfig(low=0, high=1),
        mask=ValuesConfig(low=0, high=1),
    ).problems
    assert problems == (
        "inputs.ids.values: shape.npy has shape [1, 2] instead of [2].",
        "inputs.x.values: type.npy has type float64 instead of float32.",
        "inputs.texts.values: texts have no range: give a file.",
        "inputs.mask.values: the model has no such input; it has ids, texts, x.",
    )


@pytest.mark.parametrize(
    ("file", "said"),
    [
        ("missing.npy", "missing.npy: no such file in this revision"),
        ("../out.npy", "../out.npy lies outside of the repository"),
        ("/nowhere/x.npy", "/nowhere/x.npy: no such file"),
        ("link.npy", "link.npy is a link: commit the file itself"),
    ],
)
def test_a_file_that_is_not_there_is_told(repository: Given, file: str, said: str) -> None:
    (repository.checkout.path / "link.npy").symlink_to("/etc/hostname")
    repository.checkout.commit({"a": b""})
    (problem,) = repository.rules(ids=ValuesConfig(file=file)).problems
    assert said in problem


@pytest.mark.parametrize(
    ("values", "said"),
    [
        (ValuesConfig(low=0.5, high=2), "0.5 to 2 are not integers, and the input is int64"),
        (ValuesConfig(low=0, high=2**70), "does not fit int64"),
    ],
)
def test_a_range_that_cannot_be_is_told(repository: Given, values: ValuesConfig, said: str) -> None:
    repository.checkout.commit({"a": b""})
    (problem,) = repository.rules(ids=values).problems
    assert said in problem


def test_inputs_of_uneven_cases_are_told(repository: Given) -> None:
    repository.checkout.commit({"a": b""})
    found = repository.rules(ids=ValuesConfig(cases=(1, 2)), x=ValuesConfig(cases=(1, 2, 3)))
    assert found.problems == ("inputs: all need the same number of cases; ids has 2, x has 3.",)


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        (ValuesConfig(cases=(10**30,)), f"{10**30} does not fit int64 [2]"),
        (ValuesConfig(cases=(1.5,)), "1.5 does not fit int64 [2]"),
        (ValuesConfig(cases=(float("nan"),)), "nan does not fit int64 [2]"),
        (
            ValuesConfig(low=0, high=float("inf")),
            "0 to inf is not a range that numbers can be drawn from",
        ),
        (
            ValuesConfig(low=float("nan"), high=1),
            "nan to 1 is not a range that numbers can be drawn from",
        ),
    ],
)
def test_a_number_that_the_type_does_not_have_is_a_problem(
    repository: Given, given: ValuesConfig, problem: str
) -> None:
    repository.checkout.commit({"a": b""})
    assert repository.rules(ids=given).problems == (f"inputs.ids.values: {problem}.",)


def test_all_cases_that_do_not_fit_are_told(repository: Given) -> None:
    files = {
        "shape.npy": npy_of(np.zeros(2, np.float32)),
        "type.npy": npy_of(np.zeros(3, np.int32)),
        "nan.npy": npy_of(np.full(3, np.nan, np.float32)),
        "fits.npy": npy_of(np.array([np.nan, -np.inf, 0], np.float32)),
    }
    repository.checkout.commit(files)
    found = repository.rules(x=ValuesConfig(cases=(*files, *(f"{n}.npy" for n in range(9)))))
    assert [each.removeprefix("inputs.x.values: ") for each in found.problems[:4]] == [
        "shape.npy has shape [2] instead of [3].",
        "type.npy has type int32 instead of float32.",
        "nan.npy has NaN alone, which tells nothing of the model.",
        "0.npy: no such file in this revision: commit it.",
    ]
    assert len(found.problems) == 9
    assert found.problems[-1] == "inputs.x.values: and 4 cases more."


def _config(file: str) -> Config:
    inputs = {"x": InputConfig(values=ValuesConfig(file=file))}
    return Config(models=(ModelConfig(path="*.onnx", inputs=inputs),))


def test_only_what_the_change_gives_otherwise_is_held_against_its_models(tmp_path: Path) -> None:
    """A file that lies on the runner is not opened: nobody merged its name. A model that cannot be
    read has no problem here."""
    checkout = new_repository(tmp_path / "r")
    odd, model = npy_of(np.ones((3, 16), np.float32)), matmul_model().SerializeToString()
    base = checkout.commit({"a.npy": odd, "m.onnx": model, "z.onnx": b"none"})
    head = checkout.commit({"b.npy": odd})
    repository = GitRepository(checkout.path)
    models = GitModelReader(repository).models(head)

    def told(file: str) -> tuple[str, ...]:
        revisions = Revisions(base=base, head=head)
        return unmerged_value_problems(
            repository,
            input_readers(repository),
            revisions,
            models,
            config=_config(file),
            before=_config("a.npy"),
        )

    assert told("a.npy") == told("/nowhere.npy") == ()
    (problem,) = told("b.npy")
    assert problem.startswith(
        "m.onnx: inputs.x.values: b.npy has shape [3, 16] instead of [16, 16]"
    )
