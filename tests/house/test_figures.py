from __future__ import annotations

import ast
from pathlib import Path

import pytest

from tests.house.figures import duplicate_names, function_lines, main


def test_a_name_counts_once_for_each_module_and_private_ones_do_not() -> None:
    first = ast.parse("LIMIT = 1\nclass Cell: ...\ndef run(): ...\n_hidden = 1\n")
    second = ast.parse("LIMIT = 2\nLIMIT = 3\n_hidden = 2\n")
    found = duplicate_names({Path("a.py"): first, Path("b.py"): second})
    assert found == {"LIMIT": [Path("a.py"), Path("b.py")]}


def test_lines_of_a_function_are_counted_from_its_name() -> None:
    assert list(function_lines(ast.parse("@wrapped\ndef run():\n    pass\n    pass\n"))) == [3]


def test_checkouts_stand_beside_each_other(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    for name, modules in (("small", 1), ("large", 3)):
        package = tmp_path / name / "plugin" / "tunegate"
        package.mkdir(parents=True)
        for number in range(modules):
            (package / f"part{number}.py").write_text("def run():\n    pass\n")
    small, large = str(tmp_path / "small"), str(tmp_path / "large")
    main([small, large])
    header, line, *rows = capsys.readouterr().out.splitlines()
    assert small in header
    assert header.index(small) < header.index(large)
    assert line == "|---|--:|--:|"
    assert rows[0].startswith("| files ")
    assert rows[0].endswith(" | 1 | 3 |")
