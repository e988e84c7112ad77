from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tunegate.config import Config, ModelConfig
from tunegate.measure.bench_driver import FreshProcesses
from tunegate.settings import Settings
from tunegate.system.output.directory import opened_output
from tunegate.wiring import opened_gate_tools

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
