"""The lock files of uv and of PEP 751."""

from __future__ import annotations

import pytest

from tunegate_upgrades.lock_files.lock import LockFile, LockFileError
from tunegate_upgrades.lock_files.toml_locks import (
    read_pdm_lock,
    read_poetry_lock,
    read_pylock,
    read_uv_lock,
)

DIGEST = f"sha256:{'0' * 64}"
WHEELS = f'wheels = [{{ url = "https://f.example/w.whl", hash = "{DIGEST}" }}]\n'


def uv_package(name: str, version: str, more: str = "", wheels: str = WHEELS) -> str:
    source = 'source = { registry = "https://pypi.org/simple" }\n'
    own = more if "source" in more else source + more
    return f'[[package]]\nname = "{name}"\nversion = "{version}"\n{own}{wheels}'


def uv_lock(*packages: str) -> LockFile:
    return read_uv_lock("uv.lock", "version = 1\n" + "".join(packages))


def test_pins_of_uv_have_their_hashes_and_their_index() -> None:
    (pin,) = uv_lock(uv_package("numpy", "2.3.5")).pins.values()
    assert (pin.name, pin.version, pin.hashes) == ("numpy", "2.3.5", (DIGEST,))
    assert pin.indexes == ("https://pypi.org/simple",)


def test_of_a_fork_the_version_for_this_machine_counts() -> None:
    found = uv_lock(
        uv_package("numpy", "1.0", "resolution-markers = [\"sys_platform == 'win32'\"]\n"),
        uv_package("numpy", "2.0", "resolution-markers = [\"sys_platform == 'linux'\"]\n"),
    )
    assert found.pins["numpy"].version == "2.0"
    assert found.for_others == {("numpy", "1.0 sys_platform == 'win32'")}


def test_two_versions_for_this_machine_are_refused() -> None:
    found = uv_lock(uv_package("numpy", "1.0"), uv_package("numpy", "2.0"))
    assert "pinned to 1.0 too" in found.refused["numpy"]


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('git = "https://evil.example/x?rev=1#2"', "a repository"),
        ('url = "https://evil.example/x.whl"', "an address (https://evil.example/x.whl)"),
        ('path = "wheels/x.whl"', "a file or a directory"),
        ('editable = "."', "a file or a directory"),
        ('virtual = "."', "a file or a directory"),
    ],
)
def test_a_package_from_no_index_is_refused_by_name(source: str, why: str) -> None:
    found = uv_lock(uv_package("onnxruntime", "9.9", f"source = {{ {source} }}\n"))
    assert why in found.refused["onnxruntime"]


def test_a_package_without_a_wheel_is_refused() -> None:
    found = uv_lock(uv_package("onnxruntime", "9.9", wheels=""))
    assert "has no wheel" in found.refused["onnxruntime"]


def test_pylock_is_read_with_markers_and_indexes() -> None:
    wheels = (
        f'wheels = [{{ url = "https://f.example/w.whl", hashes = {{ sha256 = "{"0" * 64}" }} }}]'
    )
    text = (
        'lock-version = "1.0"\n'
        f'[[packages]]\nname = "numpy"\nversion = "2.0"\nindex = "https://i.example"\n{wheels}\n'
        f'[[packages]]\nname = "w"\nversion = "1"\nmarker = "sys_platform == \'win32\'"\n{wheels}\n'
        '[[packages]]\nname = "here"\ndirectory = { path = "." }\n'
    )
    found = read_pylock("pylock.toml", text)
    assert read_pylock("pylock.toml", "package = 5\n" + text).pins == found.pins
    (pin,) = found.pins.values()
    assert (pin.name, pin.hashes, pin.indexes) == ("numpy", (DIGEST,), ("https://i.example",))
    assert "a file or a directory" in found.refused["here"]
    assert found.for_others == {("w", "1 sys_platform == 'win32'")}


@pytest.mark.parametrize(
    "text",
    [
        "version = 2\n",
        "= nonsense",
        f"version = {'1' * 5000}\n",
        'version = 1\npackages = ["x"]\npackage = 5\n',
        "version = 1\npackage = 3\n",
        "version = 1\n[[package]]\n",
    ],
)
def test_what_is_no_lock_of_uv_is_one_line(text: str) -> None:
    with pytest.raises(LockFileError, match=r"^uv\.lock: [^\n]*$"):
        read_uv_lock("uv.lock", text)


def test_a_later_pylock_is_refused() -> None:
    with pytest.raises(LockFileError, match=r"lock-version 2\.0"):
        read_pylock("pylock.toml", 'lock-version = "2.0"\n')


FILES = f'files = [{{file = "x-py3-none-any.whl", hash = "{DIGEST}"}}, {{file = "x.tar.gz"}}]\n'


def poetry_lock(more: str, version: str = "2.1") -> LockFile:
    return read_poetry_lock("poetry.lock", f'{more}\n[metadata]\nlock-version = "{version}"\n')


def test_pins_of_poetry_have_their_hashes_and_markers() -> None:
    found = poetry_lock(
        f'[[package]]\nname = "onnxruntime"\nversion = "1.20.1"\n{FILES}'
        f'[[package]]\nname = "numpy"\nversion = "1.0"\n{FILES}'
        "markers = \"sys_platform == 'win32'\"\n"
        f'[[package]]\nname = "numpy"\nversion = "2.0"\n{FILES}'
        "markers = {main = \"sys_platform == 'linux'\", dev = \"sys_platform == 'win32'\"}\n"
    )
    pins = {pin.name: (pin.version, pin.hashes) for pin in found.pins.values()}
    assert pins == {"onnxruntime": ("1.20.1", (DIGEST,)), "numpy": ("2.0", (DIGEST,))}
    assert found.for_others == {("numpy", "1.0 sys_platform == 'win32'")}


@pytest.mark.parametrize(
    ("source", "why"),
    [
        ('type = "git"\nurl = "https://evil.example/x"\nreference = "main"', "a repository"),
        ('type = "url"\nurl = "https://evil.example/x.whl"', "an address"),
        ('type = "directory"\nurl = "../x"', "a file or a directory"),
    ],
)
def test_a_package_that_poetry_takes_from_no_index_is_refused(source: str, why: str) -> None:
    found = poetry_lock(
        f'[[package]]\nname = "onnxruntime"\nversion = "9"\n{FILES}[package.source]\n{source}\n'
    )
    assert why in found.refused["onnxruntime"]


def test_an_index_of_ones_own_stays_with_its_package() -> None:
    source = '[package.source]\ntype = "legacy"\nurl = "https://own.example/simple"\n'
    found = poetry_lock(f'[[package]]\nname = "x"\nversion = "9"\n{FILES}{source}')
    assert found.pins["x"].indexes == ("https://own.example/simple",)


def test_pins_of_pdm_are_read_and_other_formats_are_not() -> None:
    found = read_pdm_lock(
        "pdm.lock",
        '[metadata]\nlock_version = "4.5.0"\n'
        f'[[package]]\nname = "onnxruntime"\nversion = "1.20.1"\n{FILES}'
        f'[[package]]\nname = "own"\nversion = "1"\npath = "./own"\n{FILES}',
    )
    assert found.pins["onnxruntime"].hashes == (DIGEST,)
    assert "a file or a directory" in found.refused["own"]
    with pytest.raises(
        LockFileError, match=r"poetry\.lock: lock version 1\.1, and 2 is what is read"
    ):
        poetry_lock("", version="1.1")


LONG = "https://files.example/" + "x" * 80


@pytest.mark.parametrize(
    ("before", "after"),
    [
        pytest.param(
            [uv_package("ort", "1.0")],
            [uv_package("ort", "1.0"), uv_package("ort", "1.0", wheels=WHEELS.replace("0", "1"))],
            id="a second entry with other files",
        ),
        pytest.param(
            [uv_package("ort", "1.0")],
            [
                uv_package("ort", "1.0"),
                uv_package("ort", "1.0", 'source = { registry = "https://own.example" }\n'),
            ],
            id="a second entry from another index",
        ),
        pytest.param(
            [uv_package("ort", "1.0", f'source = {{ url = "{LONG}/1.whl" }}\n')],
            [uv_package("ort", "1.0", f'source = {{ url = "{LONG}/2.whl" }}\n')],
            id="another address behind the end of what is shown",
        ),
        pytest.param(
            [uv_package("ort", "1.0", wheels=f'sdist = {{ hash = "{DIGEST}" }}\n')],
            [uv_package("ort", "1.0", wheels='sdist = { hash = "sha256:1" }\n')],
            id="another archive of a package without wheels",
        ),
        pytest.param(
            [uv_package("ort", "1.0"), uv_package("ort", "2.0")],
            [uv_package("ort", "1.0"), uv_package("ort", "2.0", wheels=WHEELS.replace("0", "1"))],
            id="the files of a package with two versions",
        ),
    ],
)
def test_nothing_that_changes_what_is_installed_is_read_as_unchanged(
    before: list[str], after: list[str]
) -> None:
    assert uv_lock(*before).decides() == uv_lock(*before).decides()
    assert uv_lock(*before).decides() != uv_lock(*after).decides()


def test_a_key_that_stands_twice_is_no_lock() -> None:
    twice = uv_package("ort", "1.0", 'version = "2.0"\n')
    with pytest.raises(LockFileError, match=r"cannot be read"):
        uv_lock(twice)
