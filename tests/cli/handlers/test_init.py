import json
import re
from pathlib import Path

import msgspec
import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st

from tests.support.graphs import GraphInput, graph_of, node
from tests.support.simulated.simulated_gpus import L4, Simulate, gpu
from tests.support.small_onnx import matmul_model, save
from tests.support.workspace import Workspace
from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.inputs import GivenFor
from tunegate.cli.commands.starting import InitOptions
from tunegate.cli.handlers import init
from tunegate.cli.shared_options import Common
from tunegate.errors import ConfigError, OutputError, TunegateError
from tunegate.models.finder import FoundModel
from tunegate.models.inputs.given_values import GivenValues, input_readers
from tunegate.models.model_inputs import inputs_of_file
from tunegate.models.sizes import GuessedSize
from tunegate.review import config_file
from tunegate.review.config_file import parse_config
from tunegate.review.globs import matches
from tunegate.review.model_settings import shapes_for, values_for
from tunegate.review.named_files import value_problems
from tunegate.system.git.installed_commit import InstalledCommit, public_address
from tunegate.system.git.repository import GitRepository


@pytest.fixture
def workspace(tmp_path: Path) -> Workspace:
    made = Workspace(tmp_path / "w")
    (made.root / "tunegate.yaml").unlink()
    save(matmul_model(rows="batch"), made.root / "models" / "dynamic é.onnx")
    made.commit()
    return made


def options(workspace: Workspace, *, force: bool = False) -> InitOptions:
    return InitOptions(common=Common(repository=workspace.root), force=force)


def test_it_writes_a_configuration_that_loads_and_a_workflow(workspace: Workspace) -> None:
    assert init.run(options(workspace)) == 0
    text = (workspace.root / "tunegate.yaml").read_text()
    config = config_file.parse_config(text, "tunegate.yaml")
    assert [m.path for m in config.models] == ["models/*.onnx"]
    assert config.dims == {"batch": 1}
    assert '  "batch": 1  # guessed: a batch\n' in text
    workflow = (workspace.root / ".github" / "workflows" / "tunegate.yml").read_text()
    assert re.search(r"uses: tunegate/tunegate@(?!0{40})[0-9a-f]{40} # ", workflow)


def test_json_is_all_that_goes_to_stdout_when_it_is_asked_for(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    assert init.run(InitOptions(common=Common(repository=workspace.root, as_json=True))) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["files"] == ["tunegate.yaml", ".github/workflows/tunegate.yml"]
    assert [each["path"] for each in found["models"]] == ["models/dynamic é.onnx", "models/m.onnx"]
    assert found["models"][0]["guesses"][0]["size"] == 1


def test_on_a_machine_with_a_gpu_it_says_so_and_asks_nothing(
    simulate: Simulate, workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    simulate(gpu("GPU-1"))
    assert init.run(options(workspace)) == 0
    text = (workspace.root / "tunegate.yaml").read_text()
    (target,) = config_file.parse_config(text, "tunegate.yaml").targets
    assert (target.name, target.kind, target.arch) == ("gpu", "cuda", "sm_89")
    assert "They are tuned and gated on NVIDIA L4." in capsys.readouterr().out


def test_it_never_overwrites_unless_told_to(workspace: Workspace) -> None:
    workspace.write("tunegate.yaml", "mine")
    with pytest.raises(ConfigError, match=r"tunegate\.yaml: exists already.*--force"):
        init.run(options(workspace))
    assert (workspace.root / "tunegate.yaml").read_text() == "mine"
    assert not (workspace.root / ".github").exists()
    assert init.run(options(workspace, force=True)) == 0


def test_it_writes_both_files_or_none(workspace: Workspace) -> None:
    workspace.write(".github", "no directory")
    with pytest.raises(OutputError, match=r"cannot be written .*\. Make it one"):
        init.run(options(workspace))
    assert not (workspace.root / "tunegate.yaml").exists()


def test_a_repository_without_models_says_what_to_do(workspace: Workspace) -> None:
    workspace.git("rm", "-q", "-r", "models")
    with pytest.raises(ConfigError, match=r"no \.onnx file that git tracks or would add"):
        init.run(options(workspace))


def test_it_says_what_it_found_what_it_guessed_and_what_to_do_next(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    save(matmul_model(rows="?"), workspace.root / "models" / "NEW.ONNX")
    assert init.run(options(workspace)) == 0
    shown = capsys.readouterr().out
    gates = "It gates 3 models, and every later one in models/*.onnx:\n"
    assert shown.startswith(f"Wrote tunegate.yaml. {gates}")
    new = (
        r"models/NEW\.ONNX: dynamic sizes, guessed: x\[0\] 1; "
        r"runs in (?:[\d.]+|less than 1) ms; not committed yet"
    )
    assert re.search(new, shown)
    assert "models/m.onnx: no dynamic sizes\n" in shown
    assert "It gates each pull request and each push to main, and tunes at night" in shown
    assert "  It installs tunegate at commit " in shown
    assert "a guessed size is not the one you deploy with, correct it there.\n" in shown
    assert "git add -- tunegate.yaml .github/workflows/tunegate.yml models/NEW.ONNX && " in shown
    assert "  tunegate warm --minutes 2    # " in shown.splitlines()[-1]


def test_a_pipeline_of_gitlab_gets_no_workflow_of_github(
    workspace: Workspace, capsys: pytest.CaptureFixture[str]
) -> None:
    workspace.write(".gitlab-ci.yml", "test: {script: make}\n")
    assert init.run(options(workspace)) == 0
    shown = capsys.readouterr().out
    assert re.search(r"The job to put into \.gitlab-ci\.yml: https://.*/how-to/gitlab\.md\n", shown)
    assert "git add -- tunegate.yaml && " in shown
    assert not (workspace.root / ".github").exists()


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
        init.run(options(workspace))
    assert not elsewhere.is_file()
    assert not elsewhere.exists() or list(elsewhere.iterdir()) == []


def test_on_a_machine_with_a_gpu_the_target_is_that_gpu() -> None:
    gpu = msgspec.structs.replace(L4, name="NVIDIA H200", compute_capability="9.0")
    text = init.starter_config([FoundModel(path="a.onnx")], gpu=gpu)
    (target,) = parse_config(text, "x").targets
    assert (target.kind, target.arch, target.expect_gpu) == ("cuda", "sm_90", "NVIDIA H200")
    start = text.index("# Where you deploy on the CPU, write instead:")
    comment = text[start : text.index("targets:\n", start)].splitlines()[1:]
    instead = "targets:\n" + "\n".join(line.removeprefix("# ") for line in comment)
    (cpu,) = yaml.safe_load(instead)["targets"]
    assert (cpu["name"], cpu["kind"]) == ("cpu", "llvm")


def test_an_editor_finds_the_schema_of_the_commit_that_is_installed() -> None:
    installed = InstalledCommit(source="https://example.com/owner/name", commit="a" * 40)
    text = init.starter_config([FoundModel(path="a.onnx")], installed)
    address = f"https://example.com/owner/name/raw/{'a' * 40}/docs/schemas/tunegate.schema.json"
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={address}"
    assert parse_config(text, "x").models
    assert f"https://example.com/owner/name/blob/{'a' * 40}/docs/configuration.md" in text
    unknown = init.starter_config([FoundModel(path="a.onnx")])
    assert "yaml-language-server" not in unknown
    assert f"{public_address()}/blob/main/docs/configuration.md" in unknown


@pytest.mark.parametrize("odd", ['"two" # [1]*: é', "\u2028a: 1", "\x85a: 1", "😀", "N" * 2000])
def test_a_name_may_hold_anything(odd: str) -> None:
    inputs = (ModelInput(odd, (None, None), (odd, "")),)
    guesses = (GuessedSize(odd, 0, odd, 1, odd), GuessedSize(odd, 1, "", 2, odd))
    found = FoundModel(path=f"{odd}.onnx", note=odd, inputs=inputs, guesses=guesses)
    config = parse_config(init.starter_config([found]), "x")
    assert shapes_for(config, found.path, inputs).shapes == {odd: (1, 2)}


def test_the_sizes_that_are_written_fill_every_open_dimension() -> None:
    inputs = (ModelInput("ids", (None, None), ("batch", "seq")), ModelInput("x", (None, 8)))
    guesses = (
        GuessedSize("ids", 0, "batch", 1, "a batch"),
        GuessedSize("ids", 1, "seq", 128, "a length"),
        GuessedSize("x", 0, "", 1, "the first dimension is a batch"),
    )
    model = FoundModel(path="a.onnx", inputs=inputs, guesses=guesses)
    config = parse_config(init.starter_config([model]), "x")
    assert shapes_for(config, "a.onnx", inputs).shapes == {"ids": (1, 128), "x": (1, 8)}


def test_why_inputs_are_not_known_is_a_comment() -> None:
    text = init.starter_config([FoundModel(path="a.onnx", note="its bytes are in Git LFS")])
    assert "    # its bytes are in Git LFS\n" in text
    assert parse_config(text, "x").models[0].inputs == {}


@pytest.mark.parametrize("release", ["v1.2.3", ""])
def test_the_workflow_is_pinned_to_what_is_installed(release: str) -> None:
    commit = "1234567890abcdef1234567890abcdef12345678"
    source = "https://code.example.com/owner/name"
    text = init.starter_workflow(InstalledCommit(source=source, commit=commit, release=release))
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    assert f"owner/name@{commit}" in [step.get("uses") for step in steps]
    assert any(f'"tunegate[tvm] @ git+{source}@{commit}"' in step.get("run", "") for step in steps)
    assert f"owner/name@{commit} # {release or 'the commit that wrote this file'}\n" in text
    assert "tunegate/tunegate" not in text
    assert "0" * 40 not in text


def test_the_workflow_is_for_the_branch_that_is_the_default_one() -> None:
    text = init.starter_workflow(None, "it's/trunk")
    workflow = yaml.safe_load(text)
    assert workflow[True]["push"]["branches"] == ["it's/trunk"]
    assert "github.ref == 'refs/heads/it''s/trunk'" in workflow["jobs"]["warm"]["if"]
    assert "main]" not in text


def test_a_workflow_of_an_unknown_commit_cannot_start() -> None:
    text = init.starter_workflow(None)
    assert "jobs" in yaml.safe_load(text)
    assert text.count("@" + "0" * 40) == 2
    assert "pip install tunegate" not in text


@pytest.mark.parametrize(
    ("paths", "globs"),
    [
        (["m.onnx"], ("*.onnx",)),
        (["models/b.onnx", "models/a.onnx"], ("models/*.onnx",)),
        (["models/r/1/m.onnx", "models/b/1/m.onnx", "x.onnx"], ("models/**/*.onnx", "*.onnx")),
        (["z/r/1/model.onnx", "z/b/2/model.onnx"], ("z/*/{version}/model.onnx",)),
        (["z/r[/1/model.onnx"], ("z/r[[]/{version}/model.onnx",)),
        (["z/1/model.onnx", "z/a/model.onnx"], ("z/**/*.onnx",)),
        (["a/b/c/m.onnx"], ("a/b/c/*.onnx",)),
        (["a/m.onnx", "a/b/m.onnx"], ("a/**/*.onnx",)),
        (["a[1]/m.onnx"], ("a[[]1]/*.onnx",)),
        (["M.ONNX"], ()),
    ],
)
def test_each_top_level_directory_has_one(paths: list[str], globs: tuple[str, ...]) -> None:
    assert init.starter_globs(paths) == globs


@given(
    st.lists(
        st.lists(st.text("ab*?[]!-^", min_size=1), min_size=1, max_size=3).map(
            lambda parts: "/".join(parts) + ".onnx"
        ),
        min_size=1,
    )
)
def test_each_model_is_matched(paths: list[str]) -> None:
    globs = init.starter_globs(paths)
    assert all(any(matches(glob, path) for glob in globs) for path in paths)


def model(path: str, **sizes: int) -> FoundModel:
    guesses = tuple(
        GuessedSize("x", axis, symbol, size, "why")
        for axis, (symbol, size) in enumerate(sizes.items())
    )
    inputs = (ModelInput("x", tuple(None for _ in sizes), tuple(sizes)),)
    return FoundModel(path=path, inputs=inputs, guesses=guesses)


def test_a_symbol_that_means_the_same_everywhere_is_said_once() -> None:
    one, other = model("a.onnx", batch=1, side=224), model("b.onnx", batch=1, side=320)
    shared = init.shared_sizes([one, other])
    assert list(shared) == ["batch"]
    assert '  "batch": 1  # guessed: why\n' in init.shared_text(shared)
    assert [*init.entry_lines(one, shared)] == ["    dims:", '      "side": 224  # guessed: why']


def test_a_number_of_an_exporter_is_of_one_model() -> None:
    found = model("a.onnx", unk__7=1)
    assert init.shared_sizes([found]) == {}
    assert init.shared_text({}) == ""
    assert '      "unk__7": 1  # guessed: why' in [*init.entry_lines(found, {})]


def test_an_input_without_a_rank_gets_the_shape_that_its_readers_demand() -> None:
    guesses = tuple(GuessedSize("x", axis, "", size, "why") for axis, size in enumerate((1, 37)))
    inputs = (ModelInput("x", (), is_ranked=False),)
    found = FoundModel(path="a.onnx", inputs=inputs, guesses=guesses)
    assert [*init.entry_lines(found, {})] == ["    inputs:", '      "x": [1, 37]  # guessed: why']
    unread = FoundModel(path="a.onnx", inputs=inputs)
    why = "the model does not say how many dimensions"
    assert [*init.entry_lines(unread, {})] == ["    inputs:", f'      "x": [1]  # guessed: {why}']


def test_a_sum_of_other_symbols_is_not_written() -> None:
    guesses = (
        GuessedSize("x", 0, "past", 16, "why"),
        GuessedSize("x", 1, "past + 1", 17, "why", is_sum=True),
    )
    found = FoundModel(path="a.onnx", inputs=(ModelInput("x", (None, None)),), guesses=guesses)
    assert list(init.shared_sizes([found])) == ["past"]
    assert [*init.entry_lines(found, init.shared_sizes([found]))] == []


def test_a_run_takes_the_sizes_and_values_that_it_writes(workspace: Workspace) -> None:
    """A sound of open length with settings beside it, and an input whose dimension has no name."""
    inputs = [
        GraphInput("audio", (1, 8), "float32"),
        GraphInput("speed", (), "float32"),
        GraphInput("steps", (1,), "int64"),
    ]
    nodes = [
        node("Mul", "audio speed", "one"),
        node("Cast", "steps", "many", to=1),
        node("Add", "one many", "y"),
    ]
    model = graph_of(nodes, inputs)
    model.graph.input[0].type.tensor_type.shape.dim[1].Clear()
    save(model, workspace.root / "models" / "speech.onnx")
    workspace.commit()
    assert init.run(options(workspace)) == 0
    text = (workspace.root / "tunegate.yaml").read_text()
    assert (
        '      "speed": {values: {cases: [1.0]}}  # guessed: by its name: the usual speed' in text
    )
    config = config_file.parse_config(text, "tunegate.yaml")
    workspace.commit()
    file = workspace.root / "models" / "speech.onnx"
    found = shapes_for(config, "models/speech.onnx", inputs_of_file(file))
    assert (found.problems, found.shapes) == ((), {"audio": (1, 16000)})
    repository, files = GitRepository(workspace.root), {"models/speech.onnx": file}
    assert [*value_problems(input_readers(repository), config, files, "HEAD")] == []
    given = GivenFor(
        values=values_for(config, "models/speech.onnx"), shapes=found.shapes, revisions=("HEAD",)
    )
    rules = GivenValues(repository, workspace.root.parent / "kept").rules(file, given).rules
    assert {*rules} == {"speed", "steps"}
