"""How chains of imports are counted, and that ours are short."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.house.import_graph import import_graph, longest_chain, propagation_cost
from tests.house.sources import ROOT

MAX_CHAIN = 12


def test_no_chain_of_imports_is_longer_than_a_reader_can_follow() -> None:
    chain = longest_chain(import_graph(ROOT))
    assert len(chain) <= MAX_CHAIN, " > ".join(chain)


@pytest.fixture
def checkout(tmp_path: Path) -> Path:
    """`a` imports `b`, which imports `c`; `d` imports `c` only when it is called."""
    package = tmp_path / "plugin" / "tunegate"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("")
    (package / "a.py").write_text("import json\nfrom tunegate import b\n")
    (package / "b.py").write_text("from tunegate.c import NAME\n")
    (package / "c.py").write_text("NAME = 1\n")
    (package / "d.py").write_text("def late():\n    import tunegate.c\n")
    return tmp_path


def test_a_chain_is_as_long_as_it_has_modules(checkout: Path) -> None:
    chain = longest_chain(import_graph(checkout))
    assert chain == ("tunegate.a", "tunegate.b", "tunegate.c")


def test_a_module_reaches_itself_and_what_it_imports(checkout: Path) -> None:
    assert propagation_cost(import_graph(checkout)) == pytest.approx((3 + 2 + 1 + 1 + 1) / 25)
