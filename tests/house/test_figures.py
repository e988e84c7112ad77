from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.figures import duplicate_names, function_lines, main
from tests.house.sources import ROOT


def test_a_name_counts_once_for_each_module_and_private_ones_do_not() -> None:
    first = ast.parse("LIMIT = 1\nclass Cell: ...\ndef run(): ...\n_hidden = 1\n")
    second = ast.parse("LIMIT = 2\nLIMIT = 3\n_hidden = 2\n")
    found = duplicate_names({Path("a.py"): first, Path("b.py"): second})
    assert found == {"LIMIT": [Path("a.py"), Path("b.py")]}


def test_lines_of_a_function_are_counted_from_its_name() -> None:
    assert list(function_lines(ast.parse("@wrapped\ndef run():\n    pass\n    pass\n"))) == [3]


def test_checkouts_stand_beside_each_other(capsys: pytest.CaptureFixture[str]) -> None:
    main([str(ROOT), str(ROOT)])
    header, line, *rows = capsys.readouterr().out.splitlines()
    assert (header.count(str(ROOT)), line) == (2, "|---|--:|--:|")
    assert all(row.split("|")[2:3] == row.split("|")[3:4] for row in rows)
    assert rows[0].startswith("| files ")
