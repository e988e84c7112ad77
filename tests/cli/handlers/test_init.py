from __future__ import annotations

import re
from pathlib import Path

import pytest

from tests.support.simulated.simulated_gpus import gpu, simulated
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.cli.commands.starting import InitOptions
from tunegate.cli.handlers import init
from tunegate.cli.shared_options import Common
from tunegate.errors import ConfigError, TunegateError
from tunegate.review import config_file


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "w")
    (made.root / "tunegate.yaml").unlink()
    save(matmul_model(rows="batch"), made.root / "models" / "dynamic é.onnx")
    made.commit()
    return made


def asked(workspace: Workspace, *, force: bool = False) -> InitOptions:
    return InitOptions(common=Common(repository=workspace.root), force=force)


def test_it_writes_a_configuration_that_loads_and_a_workflow(workspace: Workspace) -> None:
    assert init.run(asked(workspace)) == 0
    text = (workspace.root / "tunegate.yaml").read_text()
    config = config_file.parse_config(text, "tunegate.yaml")
    assert [m.path for m in config.models] == ["models/*.onnx"]
    assert config.dims == {"batch": 1}
    assert '  "batch": 1  # guessed: a batch\n' in text
    workflow = (workspace.root / ".github" / "workflows" / "tunegate.yml").read_text()
    assert re.search(r"uses: tunegate/tunegate@(?!0{40})[0-9a-f]{40} # ", workflow)


def test_on_a_machine_with_a_gpu_it_says_so_and_asks_nothing(
    workspace: Workspace,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    simulated(monkeypatch, tmp_path, gpu("GPU-1"))
    assert init.run(asked(workspace)) == 0
    text = (workspace.root / "tunegate.yaml").read_text()
    (target,) = config_file.parse_config(text, "tunegate.yaml").targets
    assert (target.name, target.kind, target.arch) == ("gpu", "cuda", "sm_89")
    assert "They are tuned and gated on NVIDIA L4." in capsys.readouterr().out


def test_it_never_overwrites_unless_told_to(workspace: Workspace) -> None:
    workspace.write("tunegate.yaml", "mine")
    with pytest.raises(ConfigError, match=r"tunegate\.yaml: exists already.*--force"):
        init.run(asked(workspace))
    assert (workspace.root / "tunegate.yaml").read_text() == "mine"
    assert not (workspace.root / ".github").exists()
    assert init.run(asked(workspace, force=True)) == 0


def test_a_repository_without_models_says_what_to_do(workspace: Workspace) -> None:
    workspace.git("rm", "-q", "-r", "models")
    with pytest.raises(ConfigError, match=r"no \.onnx file that git tracks or would add"):
        init.run(asked(workspace))


def test_it_says_what_it_found_what_it_guessed_and_what_to_do_next(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    save(matmul_model(rows="?"), workspace.root / "models" / "NEW.ONNX")
    assert init.run(asked(workspace)) == 0
    shown = capsys.readouterr().out
    gates = "It gates 3 models, and every later one in models/*.onnx:\n"
    assert shown.startswith(f"Wrote tunegate.yaml. {gates}")
    assert "models/NEW.ONNX: dynamic sizes, guessed: x[0] 1; not committed yet" in shown
    assert "models/m.onnx: no dynamic sizes\n" in shown
    assert "It gates each pull request and each push to main, and tunes at night" in shown
    assert "  It installs tunegate at commit " in shown
    assert "a guessed size is not the one you deploy with, correct it there.\n" in shown
    assert "git add -- tunegate.yaml .github/workflows/tunegate.yml models/NEW.ONNX && " in shown
    assert "  tunegate warm --minutes 2    # " in shown.splitlines()[-1]


def test_from_a_subdirectory_the_files_are_those_of_the_repository(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    place = workspace.root / "models"
    assert init.run(InitOptions(common=Common(repository=place))) == 0
    assert (workspace.root / "tunegate.yaml").is_file()
    assert not (place / "tunegate.yaml").exists()
    assert f"Next, in {workspace.root}:\n" in capsys.readouterr().out


@pytest.mark.parametrize("name", ["tunegate.yaml", ".github"])
def test_no_link_is_written_through(name: str, workspace: Workspace, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    (workspace.root / name).symlink_to(elsewhere)
    if name == ".github":
        elsewhere.mkdir()
    with pytest.raises(TunegateError, match=r"exists already|is a link"):
        init.run(asked(workspace))
    assert not elsewhere.is_file()
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []
