import pytest

from tunegate.artifacts.changes import ModelInput
from tunegate.models.likely_sizes import ModelKind, likely_size, model_kind
from tunegate.models.size_evidence import Evidence


@pytest.mark.parametrize(
    ("symbol", "size"),
    [
        ("batch", 1),
        ("batchSize", 1),
        ("N", 1),
        ("seq_len", 128),
        ("sequence", 128),
        ("max_tokens", 128),
        ("past_sequence_length", 16),
        ("image_height", 224),
        ("num_nodes", 16),
        ("num_edges", 32),
        ("time", 128),
    ],
)
def test_a_name_says_what_a_dimension_is(symbol: str, size: int) -> None:
    assert likely_size(ModelInput("x", (8, None), ("", symbol)), 1).sizes[0] == size


@pytest.mark.parametrize(
    ("dimensions", "sizes"),
    [
        ((None, 4), [1]),
        ((None, None), [1, 128]),
        ((None, 3, None, None), [1, 224, 224]),
        ((None, None, None, 3), [1, 224, 224]),
        ((None, None, None, None), [1, 3, 224, 224]),
        ((1, 1, 64, None), [256]),
        ((1, 3, 320, None), [320]),
    ],
)
def test_without_a_name_the_place_says_it(
    dimensions: tuple[int | None, ...], sizes: list[int]
) -> None:
    value = ModelInput("x", dimensions)
    found = [likely_size(value, axis).sizes[0] for axis, n in enumerate(dimensions) if n is None]
    assert found == sizes


def test_a_letter_behind_a_batch_is_any_number() -> None:
    assert likely_size(ModelInput("features", (1, None, 16), ("", "N", "")), 1).sizes[0] == 128
    of_batches = ModelInput("x", (None, None, 16), ("B", "N", ""))
    assert [likely_size(of_batches, axis).sizes[0] for axis in (0, 1)] == [1, 128]


@pytest.mark.parametrize("symbol", ["N", "unk__601", ""])
def test_vectors_alone_are_data_and_no_batch(symbol: str) -> None:
    vectors = [
        ModelInput(name, (None,), (symbol,), dtype=dtype)
        for name, dtype in (("phonemes", "object"), ("seconds", "float32"))
    ]
    kind = model_kind(vectors)
    assert [likely_size(each, 0, kind).sizes[0] for each in vectors] == [128, 128]
    named = ModelInput("seconds", (None,), ("batch_size",), dtype="float32")
    assert likely_size(named, 0, kind).sizes == (1,)


def test_sound_that_comes_as_features_is_counted_in_frames() -> None:
    value = ModelInput("speech", (1, None, 400), ("", "frames", ""), dtype="float32")
    state = ModelInput("in_cache0", (1, 128, 19, 1), dtype="float32")
    assert likely_size(value, 1, model_kind((value, state))).sizes[0] == 128


def test_a_piece_of_sound_is_counted_in_samples_where_a_state_is_kept() -> None:
    rate, sound = ModelInput("sr", ()), ModelInput("input", (None, None), dtype="float32")
    found = likely_size(sound, 1, model_kind((sound, rate)))
    assert found.sizes[:3] == (512, 576, 256)
    assert "state" in found.why


@pytest.mark.parametrize(
    ("name", "dimensions", "symbols", "size"),
    [
        ("atom_features", (None, 30), ("n", ""), 16),
        ("atomic_numbers", (None,), ("dim_0",), 16),
        ("pos", (None, 3), ("", ""), 16),
        ("x", (None, 30), ("num_atoms", ""), 16),
        ("coords", (None, 3), ("num_residues", ""), 64),
        ("edge_index", (2, None), ("", "E"), 32),
        ("residue_index", (None, None), ("batch", "n"), 1),
    ],
)
def test_a_molecule_has_more_than_one_atom(
    name: str, dimensions: tuple[int | None, ...], symbols: tuple[str, ...], size: int
) -> None:
    axis = dimensions.index(None)
    assert likely_size(ModelInput(name, dimensions, symbols), axis).sizes[0] == size


def _pairs(evidence: Evidence) -> list[tuple[int, int]]:
    image = ModelInput("x", (None, 3, None, None), ("N", "", "H", "W"))
    sizes = (likely_size(image, axis, ModelKind(evidence)).sizes for axis in (2, 3))
    return list(zip(*sizes, strict=True))


def test_a_recognizer_of_text_is_tried_with_lines_first() -> None:
    assert _pairs(Evidence(hints=frozenset({"text line"})))[0] == (48, 320)
    assert _pairs(Evidence(hints=frozenset({"text line", "detector"})))[0] == (640, 640)


def test_tokens_are_not_more_than_the_model_has_positions_for() -> None:
    tokens = ModelInput("input_ids", (None, None), ("batch", "sequence"), dtype="int64")
    known = Evidence(max_length=77, why={"max_length": "config.json beside it says it"})
    found = likely_size(tokens, 1, ModelKind(known))
    assert (found.sizes[0], max(found.sizes)) == (77, 77)
    longer = Evidence(max_length=512, why={"max_length": ""})
    assert likely_size(tokens, 1, ModelKind(longer)).sizes[:2] == (128, 512)
