from __future__ import annotations

from pathlib import Path

from tunegate.models.saved_model import file_digests


def test_the_weights_beside_a_large_model_are_in_its_digests(tmp_path: Path) -> None:
    file = tmp_path / "optimized.onnx"
    file.write_bytes(b"graph")
    (tmp_path / "optimized.data").write_bytes(b"weights")
    before = file_digests(file)
    (tmp_path / "optimized.data").write_bytes(b"changed")
    assert set(before) == {"optimized.onnx", "optimized.data"}
    assert file_digests(file) != before
