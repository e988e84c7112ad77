"""An environment in which a package of tests/plugins/ is installed beside the product."""

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from pathlib import Path

from tests.support.documentation import section
from tests.support.programs import run_program

PLUGINS = Path(__file__).resolve().parent


class PluginEnvironment:
    """Made in `folder`, from this environment and without a network."""

    def __init__(self, folder: Path, *plugins: str) -> None:
        self.python = folder / "bin" / "python"
        _call(sys.executable, "-m", "venv", "--without-pip", str(folder))
        (site,) = folder.glob("lib/python*/site-packages")
        # Also what is installed editable here: a path alone would not bring it.
        ours = sysconfig.get_paths()["purelib"]
        (site / "others.pth").write_text(f"import site; site.addsitedir({ours!r})\n")
        for plugin in plugins:
            self.install(PLUGINS / plugin)

    def install(self, package: Path) -> None:
        """Installs a package as its users do, but for the network."""
        pip = (sys.executable, "-m", "pip", "--python", str(self.python), "--quiet")
        offline = ("--no-index", "--no-deps", "--no-build-isolation", "--no-compile")
        _call(*pip, "install", *offline, str(package))

    def install_broken(self, example: Path, file: str, into: Path) -> None:
        """Installs a copy of an example whose file imports a library that is not here."""
        package = Path(shutil.copytree(example, into / "package"))
        (package / file).write_text("import a_library_that_is_not_here\n")
        self.install(package)

    def run_tests_of(self, example: Path, into: Path) -> str:
        """Runs a copy of the example's own tests, and returns what pytest says of them."""
        shutil.copytree(example / "tests", into / "tests")
        options = ("-q", "-p", "no:cacheprovider", "-c", "/dev/null", "--rootdir", str(into))
        done = self.run("-m", "pytest", *options, str(into / "tests"), cwd=into)
        assert done.returncode == 0, done.stdout
        return done.stdout

    def run(self, *arguments: str, cwd: Path) -> subprocess.CompletedProcess[str]:
        """`python arguments` in this environment."""
        return run_program([str(self.python), *arguments], cwd=cwd)


def _call(*line: str) -> None:
    run_program(line, cwd="/", env={**os.environ}, code=0)


def page_of(title: str, example: Path, blocks: int) -> str:
    """The section of the page about extending, whose blocks are as they stand in the example."""
    page = section(PLUGINS.parents[1] / "docs" / "how-to" / "extend.md", title)
    shown = re.findall(r"```(?:toml|python)\n(.*?)```", page, re.DOTALL)
    files = [path.read_text() for path in example.rglob("*.*") if path.suffix in {".py", ".toml"}]
    assert len(shown) == blocks
    for block in shown:
        assert any(block in text for text in files), block
    return page
