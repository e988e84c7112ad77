import textwrap
from pathlib import Path

import pytest

from tests.support.models.external_data import model_with_data
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.changes import ModelInput
from tunegate.config import Config, ModelConfig
from tunegate.errors import RevisionError
from tunegate.models.finder import find_models

POINTER = f"version https://git-lfs.github.com/spec/v1\noid sha256:{'0' * 64}\nsize 9\n"


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    return Workspace(tmp_path / "w")


def test_inputs_are_read_and_sizes_guessed_where_they_are_asked_for(workspace: Workspace) -> None:
    save(matmul_model(rows="batch"), workspace.root / "models" / "open.onnx")
    workspace.commit()
    static, opened = find_models(workspace.root, with_guesses=True)
    expected = ("models/m.onnx", (ModelInput("x", (1, 16, 14, 14), dtype="float32"),), ())
    assert (static.path, static.inputs, static.guesses) == expected
    assert [(guess.symbol, guess.size) for guess in opened.guesses] == [("batch", 1)]
    assert not find_models(workspace.root)[1].guesses


def test_only_what_a_configuration_gates_is_looked_into(workspace: Workspace) -> None:
    save(matmul_model(), workspace.root / "other.onnx")
    config = Config(models=(ModelConfig(path="models/*"),))
    assert [model.path for model in find_models(workspace.root, config)] == ["models/m.onnx"]
    assert len(find_models(workspace.root)) == 2
    listed = ["models/m.onnx"]
    assert [model.path for model in find_models(workspace.root, only=listed)] == listed


def test_what_dvc_keeps_is_found_also_where_it_was_not_pulled(workspace: Workspace) -> None:
    outs = f"outs:\n- path: stage.onnx\n  hash: md5\n  md5: {'a' * 32}\n"
    workspace.write("models/m.onnx.dvc", outs.replace("stage", "m"))
    workspace.write("models/pulled.onnx.dvc", outs.replace("stage", "pulled"))
    workspace.write("dvc.lock", "stages:\n  train:\n" + textwrap.indent(outs, "    "))
    workspace.write("dvc.yaml", "stages: {train: {outs: [stage.onnx]}}")
    (workspace.root / "models" / "m.onnx").rename(workspace.root / "models" / "pulled.onnx")
    workspace.write(".gitignore", "*.onnx\n")
    workspace.commit()
    found = {model.path: model.note for model in find_models(workspace.root)}
    assert found == {
        "models/m.onnx": "kept by DVC; dvc pull shows its inputs",
        "models/pulled.onnx": "",
        "stage.onnx": "kept by DVC; dvc pull shows its inputs",
    }
    assert all(model.is_committed for model in find_models(workspace.root))


@pytest.mark.parametrize("name", ["with space.onnx", "ünï.onnx", 'quo"te.onnx', "new\nline.onnx"])
def test_any_name_that_git_takes_is_found(workspace: Workspace, name: str) -> None:
    save(matmul_model(), workspace.root / name)
    workspace.commit()
    assert name in [model.path for model in find_models(workspace.root)]


@pytest.mark.parametrize(
    ("content", "note"), [(POINTER, "a Git LFS pointer"), ("nonsense", "not a readable ONNX file")]
)
def test_a_file_that_cannot_be_looked_into_is_listed_with_a_note(
    workspace: Workspace, content: str, note: str
) -> None:
    workspace.write("models/odd.onnx", content)
    workspace.commit()
    (odd,) = [model for model in find_models(workspace.root) if model.path == "models/odd.onnx"]
    assert odd.note.startswith(note)


def test_a_readable_file_that_is_refused_says_why(workspace: Workspace) -> None:
    (workspace.root / "models" / "odd.onnx").write_bytes(model_with_data("../outside.bin"))
    (_, odd) = find_models(workspace.root)
    why = "its external data file '../outside.bin' lies outside the model's directory"
    assert odd.note == f"{why}: export it again"
    assert odd.is_broken


def test_a_directory_that_is_no_repository_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(RevisionError, match=r"not a git repository with a working tree"):
        find_models(tmp_path)


def test_a_link_to_a_device_is_not_read(workspace: Workspace) -> None:
    (workspace.root / "models" / "device.onnx").symlink_to("/dev/null")
    workspace.commit()
    (device, _) = find_models(workspace.root)
    assert device.note == "not a file in the working tree"
