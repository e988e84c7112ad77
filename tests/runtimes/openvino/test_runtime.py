from __future__ import annotations

from pathlib import Path

import pytest

from tunegate.config import TargetConfig
from tunegate.errors import NotOfferedError
from tunegate.models.prepared import Compilable, PreparedModel
from tunegate.runtimes.openvino import runtime
from tunegate.runtimes.openvino.runtime import RUNTIME

CPU = TargetConfig(name="cpu")
GPU = TargetConfig(name="gpu", kind="cuda", arch="sm_90")


def test_it_is_for_cpus() -> None:
    assert RUNTIME.unsupported(GPU) == "is for CPUs"


def test_where_it_is_not_installed_it_says_what_installs_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    assert RUNTIME.unsupported(CPU) == "needs openvino: pip install 'tunegate[openvino]'"
    assert dict(RUNTIME.versions()) == {}


def test_its_own_quantizer_is_named_with_what_installs_it(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(runtime, "find_spec", lambda name: None)
    monkeypatch.setattr(runtime, "lacking", lambda settings: "")
    model = PreparedModel(
        original=tmp_path / "m.onnx",
        weights=None,
        inputs=(),
        outputs=(),
        make_compilable=lambda: Compilable(tmp_path, tmp_path),
    )
    with pytest.raises(NotOfferedError, match=r"not installed: pip install 'tunegate\[nncf\]'$"):
        RUNTIME.save(model, tmp_path, RUNTIME.variants(CPU)["int8.nncf"])


def test_the_usual_variant_is_float32() -> None:
    assert dict(RUNTIME.variants(CPU)[""]) == {}
