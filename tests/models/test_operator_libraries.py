"""Libraries of custom operators: the very file that the configuration names, or none."""

import hashlib
import sys
from pathlib import Path

import pytest

from tests.support.custom_operators import custom_model
from tests.support.small_onnx import save
from tunegate.config import OperatorLibraryConfig
from tunegate.errors import ConfigError, ModelError, UnsupportedModelError
from tunegate.models.graph import custom_operators
from tunegate.models.operator_libraries import library_files, require_outside, select_by_digest
from tunegate.models.preparation import prepare

CODE = b"code"


def entry(library: str, content: bytes = CODE) -> OperatorLibraryConfig:
    return OperatorLibraryConfig(library=library, sha256=hashlib.sha256(content).hexdigest())


@pytest.fixture
def place(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A package of two libraries, whose import would fail."""
    package = tmp_path / "packages" / "operators"
    package.mkdir(parents=True)
    (package / "__init__.py").write_text("raise SystemExit")
    (package / "a.so").write_bytes(b"other")
    (package / "b.so").write_bytes(CODE)
    monkeypatch.setattr(sys, "path", [*sys.path, str(package.parent)])
    return package


def test_the_file_with_the_digest_is_found_by_path_and_in_a_package(place: Path) -> None:
    for library in ("operators", str(place / "b.so")):
        (copy,) = library_files([entry(library)])
        assert (copy.name, copy.read_bytes()) == ("b.so", CODE)


def test_what_was_hashed_is_loaded_whatever_the_file_is_now(place: Path) -> None:
    """The copy is alone in a folder of this user: a library beside it would not be pinned."""
    (copy,) = library_files([entry("operators")])
    (place / "b.so").write_bytes(b"exchanged")
    assert copy.read_bytes() == CODE
    assert [*copy.parent.iterdir()] == [copy]
    assert copy.parent.parent.stat().st_mode & 0o077 == 0


def test_two_entries_of_one_content_are_one_library(place: Path) -> None:
    (place / "c.so").write_bytes(CODE)
    (copy,) = library_files([entry(str(place / name)) for name in ("b.so", "c.so")])
    assert [*copy.parent.iterdir()] == [copy]


def test_a_library_behind_links_in_a_circle_is_not_here(tmp_path: Path) -> None:
    (tmp_path / "a.so").symlink_to(tmp_path / "b.so")
    (tmp_path / "b.so").symlink_to(tmp_path / "a.so")
    libraries = [entry(str(tmp_path / "a.so"))]
    assert require_outside(libraries, tmp_path / "checkout") == libraries
    with pytest.raises(ModelError, match="there is none on this machine"):
        library_files(libraries)


def test_a_domain_of_the_extensions_that_begins_as_microsofts_own_is_of_a_library() -> None:
    model = custom_model(1)
    for domain in ("com.microsoft", "com.microsoft.extensions"):
        model.graph.node.add(op_type="DecodeImage", domain=domain)
    names = ("ai.onnx.contrib:Inverse", "com.microsoft.extensions:DecodeImage")
    assert custom_operators(model) == names


@pytest.mark.parametrize("library", ["operators", "/no/such/library.so", "no_such_package"])
def test_another_file_is_refused_and_its_digest_told(place: Path, library: str) -> None:
    with pytest.raises(ModelError, match="custom-operators names") as refused:
        library_files([entry(library, b"wanted")])
    is_there = library == "operators"
    assert (hashlib.sha256(CODE).hexdigest() in str(refused.value)) == is_there
    assert ("there is none on this machine" in str(refused.value)) != is_there


def test_code_in_the_checkout_is_refused_also_behind_a_link(place: Path, tmp_path: Path) -> None:
    checkout = tmp_path / "checkout"
    checkout.mkdir()
    (checkout / "own.so").write_bytes(CODE)
    (tmp_path / "link.so").symlink_to(checkout / "own.so")
    for file in (checkout / "own.so", tmp_path / "link.so"):
        with pytest.raises(ConfigError, match="lies in the checkout"):
            require_outside([entry(str(file))], checkout)
    outside = [entry(str(place / "b.so")), entry("operators")]
    assert require_outside(outside, checkout) == outside


def test_an_artifact_gets_the_library_that_it_was_built_with_or_none() -> None:
    one, other = entry("operators"), entry("operators", b"other")
    assert select_by_digest([one, other], [other.sha256]) == [other]
    with pytest.raises(ModelError, match="which custom-operators lacks"):
        select_by_digest([one], [other.sha256])


def test_compilers_are_told_that_operators_come_from_a_library(tmp_path: Path) -> None:
    model = save(custom_model(1), tmp_path / "m.onnx")
    prepared = prepare(model, shapes={}, into=tmp_path / "into", path="m.onnx")
    assert prepared.custom_operators == ("ai.onnx.contrib:Inverse",)
    with pytest.raises(UnsupportedModelError, match="comes from a library, which only ONNX"):
        _ = prepared.optimized
