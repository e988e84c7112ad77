from __future__ import annotations

import onnx

from tunegate.system.machine.packages import installed_version


def test_the_version_of_a_package_is_told_and_none_of_one_that_is_not_there() -> None:
    assert installed_version("onnx") == onnx.__version__
    assert installed_version("no-such-package") == ""
