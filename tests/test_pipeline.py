import sys
from pathlib import Path

import msgspec
import pytest

from tests.support.programs import run_program
from tests.support.report_parts import cell, changes
from tests.support.workspace import Workspace
from tunegate import pipeline
from tunegate.artifacts import artifact_io
from tunegate.artifacts.builds import CellBuilds, unbuilt
from tunegate.artifacts.changes import ChangeSet
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.handlers.reporting import finish
from tunegate.config import Config, ModelConfig
from tunegate.errors import ArtifactError, EnvironmentUnfitError
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.measure.latency_commands import Commands
from tunegate.settings import Settings
from tunegate.system.output.artifact_file import ArtifactFile, built_artifact
from tunegate.system.output.directory import opened_output
from tunegate.wiring import opened_gate_tools
from tunegate_cache.format.records import DeviceFingerprint

LIGHT_RUN = """\
import sys
from tunegate.cli.main import main
code = main(["run", "--base", "HEAD", "--head", "HEAD"])
assert "tvm" not in sys.modules, "the compiler was imported for nothing"
sys.exit(code)
"""


def test_a_change_of_no_model_passes_and_leaves_the_files_of_a_run(tmp_path: Path) -> None:
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    report = pipeline.nothing_to_do(config, changes(), tmp_path)
    assert finish(report, Settings(out=tmp_path)) == 0
    assert (report.verdict.status, report.verdict.findings) == ("pass", ())
    assert artifact_io.read(tmp_path / "verdict.json", Verdict) == report.verdict
    assert artifact_io.read(tmp_path / "changes.json", ChangeSet) == report.changes


def test_the_compiler_is_not_imported_when_nothing_changed(tmp_path: Path) -> None:
    workspace = Workspace(tmp_path / "w")
    run_program([sys.executable, "-c", LIGHT_RUN], cwd=workspace.root, code=0)
    for name in ("verdict.json", "report.md", "report.html", "junit.xml", "sarif.json"):
        assert (workspace.root / ".tunegate" / name).exists()


def test_nothing_is_loaded_of_a_build_that_was_exchanged(tmp_path: Path) -> None:
    """The benchmarker would not answer here: the check comes before it is asked for anything."""
    directory = tmp_path / "head"
    directory.mkdir()
    (directory / "model.so").write_text("built")
    file = ArtifactFile(runtime="tvm", file="model.so", inputs=(), outputs=(), threads=1)
    file.write(directory)
    head = built_artifact(directory)
    (directory / "model.so").write_text("exchanged")
    settings = Settings(repository=tmp_path, out=tmp_path / "out")
    config = Config(models=(ModelConfig(path="**/*.onnx"),))
    with (
        opened_output(settings.out, "compare") as out,
        opened_gate_tools(settings, config, lambda _, seed: Commands({}, seed), out) as tools,
        pytest.raises(ArtifactError, match=r"model\.so: not the file"),
    ):
        pipeline.judge(tools, changes(), [CellBuilds(cell=cell(), base=None, head=head)])


def test_a_device_that_is_lost_while_models_are_built_is_no_fault_of_theirs() -> None:
    gpu = DeviceFingerprint(name="L4", kind="cuda", units=1, memory_bytes=1, uuid="GPU-1")
    cpu = DeviceFingerprint(name="Xeon", kind="cpu", units=1, memory_bytes=1)
    builds = [CellBuilds(cell=cell(), base=None, head=unbuilt("m.onnx: CUDA error 999."))]
    pipeline.require_same_device(gpu, gpu, builds)
    with pytest.raises(EnvironmentUnfitError, match=r"GPU-1\) was lost .*: m\.onnx: CUDA error 9"):
        pipeline.require_same_device(gpu, cpu, builds)


CONFIG = Config(models=(ModelConfig(path="*.onnx"),))


def test_only_logs_stay_when_a_run_is_over(tmp_path: Path) -> None:
    settings = Settings(repository=tmp_path, out=tmp_path / "out")
    with (
        opened_output(settings.out, "compare") as out,
        opened_gate_tools(settings, CONFIG, FreshProcesses, out),
    ):
        bench = tmp_path / "out" / "work" / "bench"
        (bench / "bench.log").write_text("killed by SIGSEGV")
        (bench / "large.bin").write_bytes(b"0" * 100)
        (tmp_path / "out" / "work" / "models").mkdir()
    left = [path for path in (tmp_path / "out" / "work").rglob("*") if path.is_file()]
    assert [path.name for path in left] == ["bench.log"]
    assert not (tmp_path / "out" / "work" / "models").exists()


def broken(settings: Settings) -> None:
    with (
        opened_output(settings.out, "compare") as out,
        opened_gate_tools(settings, CONFIG, FreshProcesses, out),
    ):
        (settings.out / "work" / "kept.bin").write_bytes(b"0")
        raise RuntimeError


def test_after_an_exception_everything_stays(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError):
        broken(Settings(repository=tmp_path, out=tmp_path / "out"))
    assert (tmp_path / "out" / "work" / "kept.bin").exists()


def seed_of(settings: Settings) -> int:
    with (
        opened_output(settings.out, "compare") as out,
        opened_gate_tools(settings, CONFIG, FreshProcesses, out) as tools,
    ):
        return tools.context.seed


def test_every_run_has_a_seed_of_its_own_but_for_one_that_is_repeated(tmp_path: Path) -> None:
    settings = Settings(repository=tmp_path, out=tmp_path / "out")
    assert len({seed_of(settings) for _ in range(3)}) == 3
    assert seed_of(msgspec.structs.replace(settings, seed=7)) == 7
