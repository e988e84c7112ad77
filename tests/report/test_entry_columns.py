from __future__ import annotations

from typing import cast

import msgspec

from tests.support.history import entry
from tunegate.report.history_page import entry_columns, script_json


def column(columns: dict[str, object], name: str) -> list[int]:
    return cast("list[int]", columns[name])


def test_a_text_that_comes_again_is_kept_once() -> None:
    columns = entry_columns([entry(at) for at in range(50)])
    texts = column(columns, "texts")
    assert len(set(column(columns, "model"))) == 1
    assert texts.count("models/squeezenet.onnx") == 1  # type: ignore[arg-type]


def test_what_is_unknown_is_null_and_no_zero() -> None:
    columns = entry_columns([entry(0, head_ms=None, change_percent=None, change=None)])
    assert [columns[name] for name in ("head", "low", "high", "change")] == [[None]] * 4


def test_heads_of_requests_and_of_other_branches_are_beside_the_line() -> None:
    """Lines of earlier versions have the number of a request, and nothing of other branches."""
    columns = entry_columns([entry(0), entry(1, change=7), entry(2, is_aside=True)])
    assert columns["aside"] == [0, 1, 1]


def test_the_same_versions_in_another_order_are_one_toolchain() -> None:
    pairs = {"a": "1", "b": "2"}, {"b": "2", "a": "1"}, {"a": "1"}
    columns = entry_columns([entry(at, versions=each) for at, each in enumerate(pairs)])
    assert columns["toolchain"] == [0, 0, 1]


def test_json_in_a_script_is_the_same_value() -> None:
    value = {"</script>": ["<!--", "\u2028", "a & b"]}
    written = script_json(value)
    assert msgspec.json.decode(written) == value
    assert not set("<>&\u2028") & set(written)
