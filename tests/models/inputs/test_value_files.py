import contextlib
import io
import pickle
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from tests.models.inputs.test_given_values import Given, arrays_of, npy_of
from tests.support.git_repository import Checkout, new_repository
from tests.support.graphs import GraphInput, graph_of, node
from tests.support.small_onnx import matmul_model
from tunegate.artifacts.changes import PolicyChange
from tunegate.artifacts.inputs import InputForm
from tunegate.config import ValuesConfig
from tunegate.errors import ConfigError, ModelError
from tunegate.models.inputs import value_files
from tunegate.models.inputs.value_files import read_array, read_value
from tunegate.models.seeded_inputs import load_value, save_value
from tunegate.project import Project, open_project
from tunegate.settings import Settings

NUMBERS = np.arange(6, dtype=np.int64).reshape(2, 3)


def _npz(*arrays: Any, **named: Any) -> bytes:
    stream = io.BytesIO()
    np.savez_compressed(stream, *arrays, **named)
    return stream.getvalue()


def _zip(compression: int, *arrays: Any) -> bytes:
    stream = io.BytesIO()
    with zipfile.ZipFile(stream, "w", compression) as archive:
        for place, array in enumerate(arrays):
            archive.writestr(f"{place}.npy", npy_of(array))
    return stream.getvalue()


@pytest.mark.parametrize(
    ("name", "content"),
    [
        ("x.npy", npy_of(NUMBERS)),
        ("X.NPY", npy_of(NUMBERS)),
        ("x.npz", _npz(only=NUMBERS)),
        ("x.npz", _npz(ids=NUMBERS, mask=np.ones(2))),
        ("input_0.pb", onnx.numpy_helper.from_array(NUMBERS, "ids").SerializeToString()),
    ],
)
def test_arrays_are_read_from_the_usual_files(name: str, content: bytes) -> None:
    found = read_array(content, name, "ids")
    assert (found.tolist(), found.dtype) == (NUMBERS.tolist(), NUMBERS.dtype)


def test_texts_are_read_and_kept_without_pickles(tmp_path: Any) -> None:
    tensor = onnx.numpy_helper.from_array(np.array(["a", "bc"], dtype=object), "t")
    found = read_array(tensor.SerializeToString(), "t.pb", "t")
    assert found.tolist() == ["a", "bc"]
    assert np.load(save_value(found, tmp_path / "t"), allow_pickle=False).tolist() == ["a", "bc"]


class Evil:
    def __reduce__(self) -> tuple[Any, ...]:
        return print, ("a pickle ran",)


EVIL = np.array([Evil()], dtype=object)


@pytest.mark.parametrize(
    ("name", "content", "said"),
    [
        ("x.npy", npy_of(EVIL), "pickle, which is never loaded"),
        ("x.npy", pickle.dumps(Evil()), "cannot be read as .npy"),
        ("x.npz", _npz(a=NUMBERS, b=NUMBERS), "it has no array ids; it has a, b"),
        ("x.npz", b"PK", "cannot be read as .npz"),
        ("x.pb", b"\xff\xff", "cannot be read as .pb"),
        ("x.pb", b"", "no TensorProto"),
        ("x.npy", b"", "cannot be read as .npy"),
        ("x.npy", npy_of(NUMBERS)[:-1], "its header and its size do not fit together"),
        ("x.npy", npy_of(NUMBERS).replace(b"Y\x01", b"Y\x09"), "version 9.0 of the format"),
        ("x.txt", b"1 2", "must end in .npy, .npz, .pb"),
    ],
)
def test_what_is_no_array_is_told_in_a_few_words(
    capsys: pytest.CaptureFixture[str], name: str, content: bytes, said: str
) -> None:
    with pytest.raises(ModelError, match=said):
        read_array(content, name, "ids")
    assert capsys.readouterr().out == ""


def test_an_archive_of_very_many_files_is_not_listed() -> None:
    with pytest.raises(ModelError, match="it lists 20,000 files, more than 16,384"):
        read_array(20_000 * b"PK\1\2", "x.npz", "x")


def test_an_archive_that_unpacks_to_too_much_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(value_files, "MAX_ARRAY_BYTES", 10_000)
    archive = _zip(zipfile.ZIP_DEFLATED, np.zeros(100_000))
    with pytest.raises(ModelError, match=r"more than the \d+ MiB that an input may have"):
        read_array(archive, "x.npz", "x")


@pytest.mark.parametrize("compression", [zipfile.ZIP_BZIP2, zipfile.ZIP_LZMA])
def test_an_archive_that_unpacks_at_once_whatever_is_read_is_refused(compression: int) -> None:
    """A megabyte of bzip2 unpacks to twenty gigabytes."""
    archive = _zip(compression, NUMBERS)
    with pytest.raises(ModelError, match="not compressed as NumPy does it"):
        read_array(archive, "x.npz", "x")


def test_a_header_that_claims_petabytes_takes_no_memory() -> None:
    stream = io.BytesIO()
    header = {"descr": "<f8", "fortran_order": False, "shape": (2**50,)}
    np.lib.format.write_array_header_1_0(stream, header)
    with pytest.raises(ModelError, match="do not fit together"):
        read_array(stream.getvalue() + b"12345678", "x.npy", "x")


@settings(max_examples=60)
@given(cut=st.integers(0, 200), at=st.integers(0, 199), byte=st.integers(0, 255))
def test_damaged_files_are_arrays_or_told(cut: int, at: int, byte: int) -> None:
    for name, whole in (("x.npy", npy_of(NUMBERS)), ("x.npz", _npz(x=NUMBERS))):
        content = bytearray(whole[: len(whole) - cut])
        if at < len(content):
            content[at] = byte
        with contextlib.suppress(ModelError):
            assert read_array(bytes(content), name, "x").ndim >= 0


ONE, TWO = np.array([1, 2]), np.array([[3.5]])


def _sequence(*arrays: Any) -> bytes:
    return bytes(onnx.numpy_helper.from_list(list(arrays)).SerializeToString())


def _optional(value: Any, kind: int) -> bytes:
    return bytes(onnx.numpy_helper.from_optional(value, None, kind).SerializeToString())


def _lists(value: Any) -> Any:
    if value is None:
        return None
    return [each.tolist() for each in value] if isinstance(value, list) else value.tolist()


@pytest.mark.parametrize(
    ("name", "content", "form", "value"),
    [
        ("a.pb", _sequence(ONE, TWO), "sequence", [[1, 2], [[3.5]]]),
        ("a.pb", _sequence(), "sequence", []),
        ("a.npz", _npz(ONE, TWO), "sequence", [[1, 2], [[3.5]]]),
        ("a.npz", _npz(*range(12)), "sequence", [*range(12)]),
        ("a.pb", _optional(ONE, onnx.OptionalProto.TENSOR), "optional", [1, 2]),
        ("a.pb", _optional(None, onnx.OptionalProto.TENSOR), "optional", None),
        ("a.pb", _optional([ONE], onnx.OptionalProto.SEQUENCE), "optional sequence", [[1, 2]]),
        ("a.npz", _npz(ONE), "optional sequence", [[1, 2]]),
    ],
)
def test_values_are_read_in_order(name: str, content: bytes, form: InputForm, value: Any) -> None:
    assert _lists(read_value(content, name, "x", form)) == value


_TENSOR = onnx.numpy_helper.from_array(np.ones(1, np.float32)).SerializeToString()
_NESTED = onnx.SequenceProto(elem_type=onnx.SequenceProto.SEQUENCE)
_NESTED.sequence_values.add()


@pytest.mark.parametrize(
    ("content", "form", "said"),
    [
        (_TENSOR, "sequence", "no SequenceProto"),
        (_TENSOR, "optional", "no OptionalProto"),
        (_NESTED.SerializeToString(), "sequence", "no sequence of tensors"),
        (_optional([ONE], onnx.OptionalProto.SEQUENCE), "optional", "it is no optional"),
        (b"\xff\xff", "sequence", "cannot be read as .pb"),
    ],
)
def test_other_messages_are_refused(content: bytes, form: InputForm, said: str) -> None:
    with pytest.raises(ModelError, match=said):
        read_value(content, "a.pb", "x", form)


def test_a_sequence_has_its_bounds(monkeypatch: pytest.MonkeyPatch) -> None:
    long = _sequence(*[np.zeros(0)] * (value_files.MAX_TENSORS + 1))
    with pytest.raises(ModelError, match="it has 1025 tensors; a sequence may have 1024"):
        read_value(long, "a.pb", "x", "sequence")
    monkeypatch.setattr(value_files, "MAX_ARRAY_BYTES", 3000)
    packed = _zip(zipfile.ZIP_DEFLATED, *[np.zeros(150)] * 3)
    assert len(packed) < 3000
    with pytest.raises(ModelError, match=r"more than the \d+ MiB that an input may have"):
        read_value(packed, "a.npz", "x", "sequence")


@settings(max_examples=60)
@given(cut=st.integers(0, 60), at=st.integers(0, 59), byte=st.integers(0, 255))
@example(cut=0, at=0, byte=0)
def test_damaged_messages_are_values_or_told(cut: int, at: int, byte: int) -> None:
    content = bytearray(_sequence(ONE, TWO))
    content[at % len(content)] = byte
    for form in ("sequence", "optional", "optional sequence"):
        with contextlib.suppress(ModelError):
            read_value(bytes(content[: len(content) - cut]), "a.pb", "x", form)


def test_an_empty_input_takes_an_empty_file_and_no_other(tmp_path: Path) -> None:
    given = Given(tmp_path)
    boxes = GraphInput("boxes", (0, 4), "float32")
    onnx.save(graph_of([node("Relu", "boxes", "y")], [boxes]), given.model)
    one = onnx.numpy_helper.from_array(np.zeros((1, 4), np.float32)).SerializeToString()
    none = onnx.numpy_helper.from_array(np.zeros((0, 4), np.float32)).SerializeToString()
    given.checkout.commit({"one.pb": one, "none.pb": none})
    (rule,) = given.rules(boxes=ValuesConfig(file="none.pb")).rules.values()
    assert arrays_of(rule) == [[]]
    (filled,) = given.rules(boxes=ValuesConfig(cases=(1.0,))).rules.values()
    assert arrays_of(filled) == [[]]
    assert given.rules(boxes=ValuesConfig(file="one.pb")).problems == (
        "inputs.boxes.values: one.pb has shape [1, 4] instead of [0, 4].",
    )


def _of_sequence(given: Given, *shape: int | str) -> None:
    tensor = onnx.helper.make_tensor_type_proto(onnx.TensorProto.FLOAT, shape)
    parts = onnx.helper.make_value_info("parts", onnx.helper.make_sequence_type_proto(tensor))
    model = graph_of([node("SequenceLength", "parts", "y")], [])
    model.graph.input.append(parts)
    onnx.save(model, given.model)


def test_a_sequence_is_one_file_or_one_for_each_tensor(tmp_path: Path) -> None:
    given = Given(tmp_path)
    given.shapes = {"parts": (4,)}
    _of_sequence(given, "n")
    one, two = np.ones(1, np.float32), np.ones(2, np.float32)
    whole = onnx.numpy_helper.from_list([one, two]).SerializeToString()
    given.checkout.commit({"s.pb": whole, "1.npy": npy_of(one), "2.npy": npy_of(two)})
    kept = []
    for values in (ValuesConfig(file="s.pb"), ValuesConfig(sequence=("1.npy", "2.npy"))):
        found = given.rules(parts=values)
        assert found.problems == ()
        kept.append(found.rules["parts"].values)
    assert kept[0].files == kept[1].files  # type: ignore[union-attr]
    (file,) = kept[0].files  # type: ignore[union-attr]
    assert [each.tolist() for each in load_value(Path(file), "float32")] == [[1], [1, 1]]
    (empty,) = given.rules(parts=ValuesConfig(sequence=())).rules.values()
    assert load_value(Path(empty.values.files[0]), "float32") == []  # type: ignore[union-attr]


def test_what_is_no_sequence_is_told(tmp_path: Path) -> None:
    given = Given(tmp_path)
    _of_sequence(given, 2)
    whole = onnx.numpy_helper.from_list([np.ones(3, np.float32)]).SerializeToString()
    given.checkout.commit({"s.pb": whole, "1.npy": npy_of(np.ones(2))})
    said = [
        given.rules(parts=values).problems
        for values in (
            ValuesConfig(file="s.pb"),
            ValuesConfig(file="1.npy"),
            ValuesConfig(sequence=("1.npy",)),
            ValuesConfig(cases=(1.0,)),
        )
    ]
    assert said == [
        ("inputs.parts.values: s.pb has shape [3] instead of [2].",),
        ("inputs.parts.values: 1.npy: it holds one array, and the input is a sequence of them.",),
        ("inputs.parts.values: 1.npy has type float64 instead of float32.",),
        ("inputs.parts.values: 1.0 fills no sequence: give a file.",),
    ]


def test_only_a_sequence_is_given_one(tmp_path: Path) -> None:
    repository = Given(tmp_path)
    repository.checkout.commit({"ids.npy": npy_of(np.array([1, 2]))})
    assert repository.rules(ids=ValuesConfig(sequence=("ids.npy",))).problems == (
        "inputs.ids.values: the input is not a sequence: give a file, or cases.",
    )


# What is refused of a change that only says something of files, in real repositories.

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


def test_files_that_are_there_and_words_that_are_none_are_taken(checkout: Checkout) -> None:
    config = METRIC.replace("LINE", "python wer.py --like team/model --lib=lib")
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
    checkout.commit({NAME: METRIC.replace("LINE", "python wer.py --lib=lib").encode()})
    checkout.git("branch", "-f", "main")
    checkout.commit({"lib/a.py": b"2", "note.txt": b"more"})
    told = _told(checkout)
    assert [(each.key, each.old.split()[0], each.counts) for each in told] == [
        ("models[].accuracy.metric-command", "lib", "once merged")
    ]
