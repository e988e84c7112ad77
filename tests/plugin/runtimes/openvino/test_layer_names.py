from __future__ import annotations

from pathlib import Path

from tests.support.small_onnx import conv_model, save
from tunegate.runtimes.openvino.layer_names import LAYERS, names_in


class OwnFile:
    """What OpenVINO reads of a file of its own."""

    def __init__(self, told: str) -> None:
        self.astype = {str: told}.__getitem__

    def get_rt_info(self, path: list[str]) -> OwnFile:
        assert path == [LAYERS]
        return self


def test_the_names_of_an_onnx_file_are_those_of_its_nodes_and_what_they_give(
    tmp_path: Path,
) -> None:
    file = save(conv_model(name="stem"), tmp_path / "m.onnx")
    assert names_in(file, None) == {"stem", "c", "stem_relu", "y"}


def test_a_file_of_openvinos_own_says_them() -> None:
    assert names_in(Path("m.xml"), lambda file: OwnFile('["stem", "y"]')) == {"stem", "y"}
