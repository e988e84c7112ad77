"""What the child answers whose runtime saves a model, whatever the runtime does."""

from __future__ import annotations

from pathlib import Path

import msgspec
import pytest

from tests.support.runtime_packages import WHOLE, RuntimePackages
from tests.support.small_onnx import one_node_model, save
from tunegate.runtimes.build_child import handle_request
from tunegate.runtimes.build_messages import Refused, WriteArtifact, Written
from tunegate.system.output.artifact_file import ArtifactFile

SAME = WHOLE.format(name="fast")


class Child:
    """Asked for a model that gives back what it gets, for a runtime with this source."""

    def __init__(self, root: Path, packages: RuntimePackages) -> None:
        self._packages = packages
        self.artifact = root / "artifact"
        self.request = WriteArtifact(
            runtime="fast",
            variant="",
            settings={},
            is_reference=False,
            file=str(save(one_node_model("Identity"), root / "m.onnx")),
            path="models/m.onnx",
            shapes={},
            threads=1,
            directory=str(self.artifact),
            scratch=str(root / "scratch"),
            seeds=(1, 2),
        )

    def written(self, source: str = SAME, **changes: object) -> Written:
        reply = self.reply(source, **changes)
        assert isinstance(reply, Written), reply
        return reply

    def refused(self, source: str) -> str:
        reply = self.reply(source)
        assert isinstance(reply, Refused)
        return reply.reason

    def reply(self, source: str, **changes: object) -> Written | Refused:
        self._packages.install("fast", source)
        return handle_request(msgspec.structs.replace(self.request, **changes))


@pytest.fixture
def child(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Child:
    return Child(tmp_path, RuntimePackages(tmp_path / "site", monkeypatch))


def test_what_computes_the_same_is_written_and_described(child: Child) -> None:
    written = child.written(settings={"precision": "exact"}, variant="exact")
    assert written.check is not None
    assert written.check.passed
    assert written.size_bytes == len(b"model")
    artifact = ArtifactFile.read(child.artifact)
    assert (artifact.runtime, artifact.variant) == ("fast", "exact")
    assert artifact.settings == {"precision": "exact"}
    assert (artifact.file, artifact.key) == ("model.bin", written.key)
    assert [tensor.name for tensor in artifact.outputs] == ["y"]


def test_an_artifact_says_on_which_device_it_runs(child: Child) -> None:
    on_cpu = child.written()
    assert ArtifactFile.read(child.artifact).device == "cpu"
    on_gpu = child.written(device="cuda")
    assert ArtifactFile.read(child.artifact).device == "cuda"
    assert on_gpu.key != on_cpu.key


def test_what_computes_other_numbers_does_not_pass(child: Child) -> None:
    written = child.written(SAME.replace('[feed["x"]]', '[feed["x"] * 1.01]'))
    assert written.check is not None
    assert not written.check.passed
    assert written.check.detail.startswith("output y is off by")


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        ('return "model.bin"', 'raise ValueError("no Identity")', "cannot run the model (no Ident"),
        ("return Loaded()", "raise OSError()", "Example cannot run the model (OSError)"),
        ('return [feed["x"]]', "raise KeyError(1)", "Example does not run it on the inputs that"),
        ('return [feed["x"]]', "return []", "Example cannot run the model (zip() argument"),
        ("def versions(self): return {}", "def versions(self): return 1", "cannot run the model"),
        ("RUNTIME =", "raise OSError(1) #", "cannot be loaded (OSError: 1)"),
    ],
)
def test_whatever_a_runtime_raises_refuses_this_model(
    child: Child, before: str, after: str, said: str
) -> None:
    assert said in child.refused(SAME.replace(before, after))


def test_the_key_is_of_the_files_the_versions_the_threads_and_the_settings(child: Child) -> None:
    first = child.written().key
    assert child.written().key == first
    assert child.written(threads=2).key != first
    assert child.written(settings={"precision": "half"}).key != first
    assert child.written(SAME.replace("return {}", 'return {"fast": "2"}')).key != first
    assert child.written(SAME.replace('b"model"', 'b"other"')).key != first
