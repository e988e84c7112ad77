"""The choice of packages for this machine."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.markers import applies


@pytest.mark.parametrize(
    ("marker", "is_here"),
    [
        ("sys_platform == 'linux'", True),
        ("sys_platform == 'win32'", False),
        ("python_full_version >= '3.11' and extra == 'gpu'", False),
    ],
)
def test_a_marker_is_read_for_this_python_without_extras(marker: str, *, is_here: bool) -> None:
    assert applies(marker) is is_here


@pytest.mark.parametrize("odd", ["nonsense", "(" * 900 + "x" + ")" * 900, "a" * 3000])
def test_what_is_no_marker_is_a_value_error(odd: str) -> None:
    with pytest.raises(ValueError, match="marker"):
        applies(odd)
