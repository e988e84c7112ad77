"""Small models that refuse most sizes, as others' do, and what `init` chooses for them."""

import json
import time
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import onnx
import pytest
from onnx import TensorProto, helper

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.inputs import Constant, Uniform
from tunegate.cli.handlers.doctor_checks import shape_report
from tunegate.config import Config, ModelConfig, ProfileConfig
from tunegate.models import trial_child
from tunegate.models.finder import FoundModel, find_models
from tunegate.models.model_inputs import kind_of_input
from tunegate.models.size_evidence import Evidence, evidence_of
from tunegate.models.size_trials import choose_sizes, milliseconds_in_words, try_models
from tunegate.models.sizes import guessed_sizes, size_candidates
from tunegate.models.trial_messages import NotLoaded, Outcome, TriedSizes, TrySizes

IMAGE = GraphInput("x", (1, 3, 8, 8), "float32")
SOUND = GraphInput("input", (1, 8), "float32")


def resize(model: onnx.ModelProto, **shapes: Sequence[str | int]) -> onnx.ModelProto:
    """The model with inputs of these dimensions."""
    for value in model.graph.input:
        dims = value.type.tensor_type.shape.dim
        for dim, size in zip(dims, shapes.get(value.name, ()), strict=False):
            dim.Clear()
            if isinstance(size, str):
                dim.dim_param = size
            else:
                dim.dim_value = size
    return model


def open_image() -> onnx.ModelProto:
    return resize(model(), x=["N", 3, "H", "W"])


def chosen(
    model: onnx.ModelProto,
    at: Path,
    path: str = "models/m.onnx",
    ask: Callable[[TrySizes], TriedSizes | NotLoaded | str] = trial_child.handle_request,
) -> FoundModel:
    """Returns the model with the sizes chosen by the child's code, in this process, or by whoever
    is asked in its place."""
    file = save(model, at / "m.onnx")
    evidence = evidence_of(model, path)
    found = FoundModel(path=path, inputs=(), guesses=guessed_sizes(model, evidence))
    candidates = size_candidates(model, evidence)
    deadline = time.monotonic() + 60
    return choose_sizes(file, found, candidates, model, ask, scratch=at / "s", deadline=deadline)


def sizes(model: FoundModel) -> dict[str, int]:
    return {each.symbol or f"{each.input}[{each.axis}]": each.size for each in model.guesses}


def recognizer(height: int) -> onnx.ModelProto:
    """Reads so many rows of an image at once, as recognizers of a line of text do."""
    nodes = [
        node("MaxPool", "x", "small", kernel_shape=[16, 4], strides=[16, 4]),
        node("Transpose", "small", "columns", perm=[0, 1, 3, 2]),
        node("MatMul", "columns w", "y"),
    ]
    model = graph_of(nodes, [IMAGE], weights={"w": np.ones((height // 16, 2), np.float32)})
    return resize(model, x=["N", 3, "H", "W"])


@pytest.mark.parametrize("height", [32, 48, 64])
def test_a_recognizer_gets_the_height_that_it_takes(height: int, tmp_path: Path) -> None:
    found = sizes(chosen(recognizer(height), tmp_path))
    assert height <= found["H"] < height + 16
    assert found["W"] > found["H"]


def test_a_time_below_the_cost_of_a_trial_itself_is_no_number() -> None:
    seconds = 0.00076, 0.0012, 0.0349
    assert list(map(milliseconds_in_words, seconds)) == ["less than 1 ms", "1.2 ms", "35 ms"]


def test_a_recognizer_is_known_by_its_name_before_it_is_tried(tmp_path: Path) -> None:
    found = chosen(open_image(), tmp_path, "models/ppocr_rec.onnx")
    assert sizes(found) == {"N": 1, "H": 48, "W": 320}
    assert [each.partition(":")[0] for each in found.trial.tried] == ["N 1, H 48, W 320"]


def detector_of_voice(samples: int) -> onnx.ModelProto:
    """Takes pieces of so many samples, and keeps a state."""
    state = GraphInput("state", (1, 4), "float32")
    nodes = [
        node("MatMul", "padded w", "seen"),
        node("Add", "input nothing", "padded"),
        node("Add", "seen state", "y"),
    ]
    nodes = [nodes[1], nodes[0], nodes[2]]
    weights = {"w": np.ones((samples, 4), np.float32), "nothing": np.zeros((1, 1), np.float32)}
    return resize(graph_of(nodes, [SOUND, state], weights=weights), input=["batch", "sequence"])


@pytest.mark.parametrize("samples", [256, 512, 576])
def test_a_detector_of_voice_gets_the_piece_that_it_takes(samples: int, tmp_path: Path) -> None:
    assert sizes(chosen(detector_of_voice(samples), tmp_path))["sequence"] == samples


def test_a_model_of_frames_gets_several_rows_where_one_is_refused(tmp_path: Path) -> None:
    """Its first dimension is no batch, as the frames of a convolution over time."""
    frames = GraphInput("x", (8, 10), "float32")
    nodes = [
        node("Unsqueeze", "x zero", "whole"),
        node("Transpose", "whole", "turned", perm=[0, 2, 1]),
        node("Conv", "turned w", "y"),
    ]
    weights = {"zero": np.array([0]), "w": np.ones((5, 10, 3), np.float32)}
    found = chosen(resize(graph_of(nodes, [frames], weights=weights), x=["N", 10]), tmp_path)
    assert sizes(found) == {"N": 16}
    assert found.guesses[0].why == "rows: ONNX Runtime refuses a single one"


def test_a_size_that_nobody_guesses_is_taken_from_the_refusal(tmp_path: Path) -> None:
    found = chosen(detector_of_voice(731), tmp_path)
    assert sizes(found)["sequence"] == 731
    (guess,) = [each for each in found.guesses if each.symbol == "sequence"]
    assert guess.why == "ONNX Runtime names it where it refuses others"
    assert "refused" in found.trial.tried[0]


def test_settings_are_written_as_callers_set_them(tmp_path: Path) -> None:
    inputs = [SOUND, *(GraphInput(name, (), "float32") for name in ("speed", "fmin", "fmax"))]
    nodes = [
        node("Mul", "input speed", "one"),
        node("Add", "one fmin", "two"),
        node("Add", "two fmax", "y"),
    ]
    found = chosen(resize(graph_of(nodes, inputs), input=["batch", "samples"]), tmp_path)
    values = {name: rule.values for name, rule in found.trial.rules.items()}
    assert values == {"speed": Constant(1.0), "fmin": Constant(50.0), "fmax": Constant(1100.0)}


def test_a_length_follows_the_tokens_and_is_not_written(tmp_path: Path) -> None:
    tokens, length = GraphInput("x", (1, 8), "int64"), GraphInput("x_lengths", (1,), "int64")
    nodes = [
        node("Gather", "table x", "rows"),
        node("Cast", "x_lengths", "float", to=1),
        node("Add", "rows float", "y"),
    ]
    weights = {"table": np.ones((40, 4), np.float32)}
    model = resize(graph_of(nodes, [tokens, length], weights=weights), x=["batch", "seq"])
    found = chosen(model, tmp_path)
    (given,) = [each for each in found.trial.inputs if each.name == "x_lengths"]
    assert given.rule is not None
    assert (given.rule.values, found.trial.rules) == (Constant(128), {})


def test_a_sound_that_is_one_step_is_made_longer(tmp_path: Path) -> None:
    """A window of 16000 samples fits once into the first size, and thrice into a later one."""
    nodes = [node("Unsqueeze", "input one", "sound"), node("Conv", "sound w", "y", strides=[8000])]
    weights = {"one": np.array([1]), "w": np.ones((1, 1, 16000), np.float32)}
    model = graph_of(nodes, [SOUND], weights=weights)
    steps = helper.make_tensor_value_info("y", onnx.TensorProto.FLOAT, [1, 1, "steps"])
    del model.graph.output[:]
    model.graph.output.append(steps)
    assert sizes(chosen(resize(model, input=["batch", "samples"]), tmp_path))["samples"] == 48000


def test_a_detector_gets_the_image_of_its_metadata(tmp_path: Path) -> None:
    detector = model(imgsz="[1280, 1280]", task="detect")
    found = chosen(resize(detector, x=["batch", 3, "height", "width"]), tmp_path)
    assert sizes(found) == {"batch": 1, "height": 1280, "width": 1280}
    assert [each.why for each in found.guesses][1:] == ["the model's metadata say it"] * 2


def test_values_on_which_a_model_tells_nothing_are_changed_and_written(tmp_path: Path) -> None:
    nodes = [node("Greater", "x forty", "is_above"), node("Cast", "is_above", "y", to=1)]
    model = graph_of(nodes, [IMAGE], weights={"forty": np.float32(40)})
    found = chosen(resize(model, x=["N", 3, "H", "W"]), tmp_path)
    assert found.trial.rules["x"].values == Uniform(0.0, 255.0)
    assert found.trial.note == ""


def test_outputs_that_stay_the_same_are_told_in_a_line(tmp_path: Path) -> None:
    nodes = [node("Mul", "x nothing", "y")]
    model = graph_of(nodes, [IMAGE], weights={"nothing": np.float32(0)})
    note = chosen(resize(model, x=["N", 3, "H", "W"]), tmp_path).trial.note
    assert note.startswith("on drawn inputs its outputs are the same whatever it is given: give")


def test_a_model_that_takes_none_of_the_sizes_says_so(tmp_path: Path) -> None:
    nodes = [node("Reshape", "x odd", "y")]
    model = graph_of(nodes, [IMAGE], weights={"odd": np.array([11, 13, -1])})
    found = chosen(resize(model, x=["N", 3, "H", "W"]), tmp_path)
    assert found.trial.note.startswith("ONNX Runtime runs at none of the sizes that were tried (")


def _heights(model: onnx.ModelProto, at: Path, replies: dict[int, float]) -> tuple[list[int], int]:
    """The heights that a child is asked for whose runs take so many seconds, and the chosen one."""
    asked: list[int] = []

    def ask(request: TrySizes) -> TriedSizes:
        asked.append(request.shapes["x"][2])
        return TriedSizes(outcome=Outcome(seconds=replies.get(asked[-1], 99.0)))

    return asked, sizes(chosen(model, at, ask=ask))["H"]


def test_a_size_that_takes_seconds_gives_way_to_a_smaller_one_and_none_larger_is_tried(
    tmp_path: Path,
) -> None:
    asked, height = _heights(open_image(), tmp_path, {224: 5.0, 128: 0.5, 48: 3.0})
    assert height == 128
    assert max(asked) == 224


def test_a_size_that_never_ends_is_not_chosen_where_others_are_refused(tmp_path: Path) -> None:
    """Its values are wrong, which says more than a size that nobody would send."""
    model = open_image()

    def ask(request: TrySizes) -> TriedSizes:
        is_large = request.shapes["x"][2] > 600
        return TriedSizes(outcome=Outcome(is_late=is_large, problem="" if is_large else "sums"))

    note = chosen(model, tmp_path, ask=ask).trial.note
    assert note == "ONNX Runtime runs at none of the sizes that were tried (sums)"
    late = "did not finish in 20 s"
    note = chosen(model, tmp_path, ask=lambda _: late).trial.note
    assert note == f"its sizes could not be tried: the process {late}"


def test_what_the_file_says_may_take_its_time(tmp_path: Path) -> None:
    image = resize(model(imgsz="[1280, 1280]"), x=["N", 3, "H", "W"])
    asked, height = _heights(image, tmp_path, {1280: 6.0})
    assert (asked, height) == ([1280], 1280)


def test_a_model_that_is_not_loaded_keeps_its_guesses_and_says_why(tmp_path: Path) -> None:
    said = "ONNX Runtime does not load it (no operator of this name)"
    made = chosen(open_image(), tmp_path, ask=lambda _: NotLoaded(said))
    assert sizes(made).keys() == {"N", "H", "W"}
    assert made.trial.note == said


def test_why_nobody_reads_a_model_is_said_once_and_whole(tmp_path: Path) -> None:
    name = "a-data-file-with-a-name-that-is-as-long-as-those-of-exporters-that-number-layers.bin"
    model = graph_of([node("MatMul", "x w", "y")], [IMAGE], weights={"w": np.ones((8, 2), "f4")})
    onnx.external_data_helper.set_external_data(model.graph.initializer[0], name)
    model.graph.initializer[0].ClearField("raw_data")
    note = chosen(resize(model, x=["N", 3, "H", "W"]), tmp_path).trial.note
    assert note == (f"its data file '{name}' is missing: commit it, or pull it with Git LFS")
    model = graph_of([node("Softmax", "x", "y", name="layer " * 30)], [IMAGE])
    model.graph.node[0].op_type = "Softermax"
    note = chosen(model, tmp_path).trial.note
    assert note.startswith("ONNX Runtime does not load it (")
    assert note.endswith("Error No Op registered for Softermax with domain_version of 17)")


def test_a_model_that_asks_for_all_memory_is_refused_and_the_next_is_tried(tmp_path: Path) -> None:
    """Both models are run in a real child, whose memory is bounded."""
    workspace = Workspace(tmp_path / "w")
    nodes = [
        node("Shape", "x", "shape"),
        node("Mul", "shape much", "large"),
        node("ConstantOfShape", "large", "y"),
    ]
    huge = graph_of(nodes, [IMAGE], weights={"much": np.array([1, 1, 10**5, 10**5])})
    onnx.save(resize(huge, x=["N", 3, "H", 32]), workspace.root / "models" / "a.onnx")
    onnx.save(recognizer(48), workspace.root / "models" / "b.onnx")
    workspace.commit()
    models = find_models(workspace.root, with_guesses=True)
    first, second, _ = try_models(workspace.root, models)
    assert first.trial.note.startswith("ONNX Runtime runs at none of the sizes")
    assert 48 <= sizes(second)["H"] < 64


def test_models_whose_turn_comes_too_late_keep_what_is_likely(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    (found,) = try_models(workspace.root, find_models(workspace.root, with_guesses=True), 0.0)
    assert found.trial.note == "its sizes were not tried: there was no time left"


def model(**metadata: str) -> onnx.ModelProto:
    made = graph_of([node("Relu", "x", "y")], [IMAGE])
    helper.set_model_props(made, metadata)
    return made


def beside(name: str, **document: object) -> Evidence:
    return evidence_of(model(), "models/m.onnx", {name: json.dumps(document).encode()})


@pytest.mark.parametrize("size", ["640", "[1, 3, 640, 640]", "640x640", "(640, 640)"])
def test_an_image_size_is_read_in_the_forms_that_exporters_write(size: str) -> None:
    assert evidence_of(model(input_size=size), "m.onnx").image == (640, 640)


@pytest.mark.parametrize(
    ("document", "image"),
    [
        ({"size": {"height": 384, "width": 512}}, (384, 512)),
        ({"size": {"shortest_edge": 256}, "crop_size": 224}, (224, 224)),
        ({"image_size": 518}, (518, 518)),
        ({"vision_config": {"image_size": 336}}, (336, 336)),
        ({"pretrained_cfg": {"input_size": [3, 260, 260]}}, (260, 260)),
    ],
)
def test_preprocessors_beside_a_model_say_its_image(
    document: dict[str, object], image: tuple[int, int]
) -> None:
    found = beside("preprocessor_config.json", **document)
    assert found.image == image
    assert found.why["image"] == "preprocessor_config.json beside it says it"


@pytest.mark.parametrize(
    "content", [b"[1, 2]", b"{", b"[" * 100_000, b'{"size": -3}', b'{"image_size": true}', b"\xff"]
)
def test_odd_files_beside_a_model_say_nothing(content: bytes) -> None:
    found = evidence_of(model(), "m.onnx", {"config.json": content})
    assert (found.image, found.why) == ((), {})


def test_a_list_of_characters_in_the_file_makes_a_recognizer() -> None:
    assert "text line" in evidence_of(model(character="a b c"), "models/m.onnx").hints
    assert not evidence_of(model(), "models/m.onnx").hints
    assert not evidence_of(model(character="<td>\n</td>\n"), "models/m.onnx").hints


@pytest.mark.parametrize("document", [{"maxlen": 64}, {"model_specs": {"max_len": 64}}])
def test_a_configuration_of_any_form_limits_the_words(document: dict[str, object]) -> None:
    assert beside("config.json", **document).max_length == 64


def test_every_profile_and_every_mistake_is_shown(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    save(matmul_model(rows="batch"), workspace.root / "models" / "m.onnx")
    profiles = {"one": ProfileConfig(dims={"batch": 1}), "open": ProfileConfig()}
    config = Config(models=(ModelConfig(path="models/*", profiles=profiles),), dims={"batsh": 2})
    found = shape_report(find_models(workspace.root, config), config)
    expected = [("models/m.onnx@one", 1), ("models/m.onnx@open", None)]
    assert [(each.model, each.size) for each in found.sizes] == expected
    wanted = ["dims.batsh", "models/m.onnx@open"]
    assert [check.detail.partition(":")[0] for check in found.checks] == wanted
    assert not any(check.ok for check in found.checks)


def test_what_cannot_be_read_is_said(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    workspace.write("models/m.onnx", "nonsense")
    config = Config(models=(ModelConfig(path="**"),))
    broken, shapes = shape_report(find_models(workspace.root, config), config).checks
    assert (broken.name, broken.ok) == ("models", False)
    assert broken.detail == "models/m.onnx: not a readable ONNX file: export it again."
    assert (shapes.name, shapes.ok) == ("shapes", True)


TENSOR = helper.make_tensor_type_proto(TensorProto.FLOAT, [0, "n"])


def test_sequences_inside_of_sequences_have_no_form() -> None:
    kind = TENSOR
    for _ in range(50):
        kind = helper.make_sequence_type_proto(kind)
    assert kind_of_input(helper.make_value_info("x", kind)).form is None
