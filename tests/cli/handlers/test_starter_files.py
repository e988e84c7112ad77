from __future__ import annotations

import pytest
import yaml

from tunegate.artifacts.changes import ModelInput
from tunegate.artifacts.measurements import Gpu
from tunegate.cli.handlers.init import starter_config, starter_workflow
from tunegate.models.finder import FoundModel
from tunegate.models.sizes import GuessedSize
from tunegate.review.config_file import parse_config
from tunegate.review.model_settings import entry_for, shapes_for
from tunegate.system.git.installed_commit import InstalledCommit, public_address


def test_the_configuration_that_is_written_can_be_read() -> None:
    config = parse_config(
        starter_config([FoundModel(path="a.onnx"), FoundModel(path="b.onnx")]), "x"
    )
    assert [model.path for model in config.models] == ["*.onnx"]
    assert (config.budget.minutes, config.gate.margin_percent) == (10, 3)


def test_on_a_machine_with_a_gpu_the_target_is_that_gpu() -> None:
    gpu = Gpu(
        index=0,
        uuid="GPU-1",
        name="NVIDIA H200",
        compute_capability="9.0",
        cores=16896,
        memory_bytes=141 * 10**9,
        driver="580",
    )
    text = starter_config([FoundModel(path="a.onnx")], gpu=gpu)
    (target,) = parse_config(text, "x").targets
    assert (target.kind, target.arch, target.expect_gpu) == ("cuda", "sm_90", "NVIDIA H200")
    start = text.index("# Where you deploy on the CPU, write instead:")
    comment = text[start : text.index("targets:\n", start)].splitlines()[1:]
    instead = "targets:\n" + "\n".join(line.removeprefix("# ") for line in comment)
    (cpu,) = yaml.safe_load(instead)["targets"]
    assert (cpu["name"], cpu["kind"]) == ("cpu", "llvm")


def test_an_editor_finds_the_schema_of_the_commit_that_is_installed() -> None:
    installed = InstalledCommit(source="https://example.com/owner/name", commit="a" * 40)
    text = starter_config([FoundModel(path="a.onnx")], installed)
    address = f"https://example.com/owner/name/raw/{'a' * 40}/docs/schemas/tunegate.schema.json"
    assert text.splitlines()[0] == f"# yaml-language-server: $schema={address}"
    assert parse_config(text, "x").models
    assert f"https://example.com/owner/name/blob/{'a' * 40}/docs/configuration.md" in text
    unknown = starter_config([FoundModel(path="a.onnx")])
    assert "yaml-language-server" not in unknown
    assert f"{public_address()}/blob/main/docs/configuration.md" in unknown


def test_a_path_may_hold_anything() -> None:
    odd = 'models/"two" # words: é.onnx'
    text = starter_config([FoundModel(path=odd, note="read [it] later?")])
    assert parse_config(text, "x").models[0].path == odd


def test_a_path_with_wildcards_is_matched_as_it_is() -> None:
    config = parse_config(starter_config([FoundModel(path="m/a[1].ONNX")]), "x")
    assert entry_for(config, "m/a[1].ONNX") == config.models[0]


def test_the_sizes_that_are_written_fill_every_open_dimension() -> None:
    inputs = (ModelInput("ids", (None, None), ("batch", "seq")), ModelInput("x", (None, 8)))
    guesses = (
        GuessedSize("ids", 0, "batch", 1, "a batch"),
        GuessedSize("ids", 1, "seq", 128, "a length"),
        GuessedSize("x", 0, "", 1, "the first dimension is a batch"),
    )
    model = FoundModel(path="a.onnx", inputs=inputs, guesses=guesses)
    config = parse_config(starter_config([model]), "x")
    assert shapes_for(config, "a.onnx", inputs).shapes == {"ids": (1, 128), "x": (1, 8)}


def test_why_inputs_are_not_known_is_a_comment() -> None:
    text = starter_config([FoundModel(path="a.onnx", note="its bytes are in Git LFS")])
    assert "    # its bytes are in Git LFS\n" in text
    assert parse_config(text, "x").models[0].inputs == {}


@pytest.mark.parametrize("release", ["v1.2.3", ""])
def test_the_workflow_is_pinned_to_what_is_installed(release: str) -> None:
    commit = "1234567890abcdef1234567890abcdef12345678"
    source = "https://code.example.com/owner/name"
    text = starter_workflow(InstalledCommit(source=source, commit=commit, release=release))
    steps = [step for job in yaml.safe_load(text)["jobs"].values() for step in job["steps"]]
    assert f"owner/name@{commit}" in [step.get("uses") for step in steps]
    assert any(f'"tunegate[tvm] @ git+{source}@{commit}"' in step.get("run", "") for step in steps)
    assert f"owner/name@{commit} # {release or 'the commit that wrote this file'}\n" in text
    assert "tunegate/tunegate" not in text
    assert "0" * 40 not in text


def test_the_workflow_is_for_the_branch_that_is_the_default_one() -> None:
    text = starter_workflow(None, "it's/trunk")
    workflow = yaml.safe_load(text)
    assert workflow[True]["push"]["branches"] == ["it's/trunk"]
    assert "github.ref == 'refs/heads/it''s/trunk'" in workflow["jobs"]["warm"]["if"]
    assert "main]" not in text


def test_a_workflow_of_an_unknown_commit_cannot_start() -> None:
    text = starter_workflow(None)
    assert "jobs" in yaml.safe_load(text)
    assert text.count("@" + "0" * 40) == 2
    assert "pip install tunegate" not in text
