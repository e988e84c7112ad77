from __future__ import annotations

import pytest

from tunegate.artifacts.changes import gated_name, path_of, profile_of


@pytest.mark.parametrize("path", ["m.onnx", "a@b/m@1.onnx", "M.ONNX"])
@pytest.mark.parametrize("profile", ["", "long", "v1.2"])
def test_a_name_has_its_path_and_its_profile(path: str, profile: str) -> None:
    name = gated_name(path, profile)
    assert (path_of(name), profile_of(name)) == (path, profile)


@pytest.mark.parametrize("name", ["some command", "me@host", "a.onnx@b.onnx", "directory"])
def test_what_is_no_model_with_a_profile_is_a_path(name: str) -> None:
    assert (path_of(name), profile_of(name)) == (name, "")
