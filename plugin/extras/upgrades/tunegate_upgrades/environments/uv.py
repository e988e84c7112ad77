"""The only place that starts uv. Nothing of a package is run: only wheels are accepted, no project
settings are read, and uv's options come from us and from this machine."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
import sysconfig
from collections.abc import Mapping, Sequence
from pathlib import Path

from tunegate.errors import ConfigError
from tunegate.isolation import absolute_only

_LIMIT_SECONDS = 600.0
_MAX_SAID = 400
_PASSED_ON = re.compile(
    r"PATH|HOME|TMPDIR|LANG|LC_ALL|NETRC|SSL_CERT_FILE|SSL_CERT_DIR|SSL_CLIENT_CERT|"
    r"(?:HTTP|HTTPS|ALL|NO)_PROXY|UV_(?:HTTP_TIMEOUT|INSECURE_HOST|NATIVE_TLS|KEYRING_PROVIDER|"
    r"OFFLINE|INDEX_.+_(?:USERNAME|PASSWORD))",
    re.IGNORECASE,
)
_PLACES = re.compile(r"UV_(?:DEFAULT_INDEX|INDEX|INDEX_URL|EXTRA_INDEX_URL|FIND_LINKS|NO_INDEX)")
_WHEELS = ("--only-binary", ":all:")
_NOWHERE = "/"
_PASSWORD = re.compile(r"(?<=://)[^/@\s]+@")


class UvError(Exception):
    """An error of uv about packages that it cannot find, or that do not fit together."""


class Uv:
    """`indexes` are the only sources of packages; without any it is PyPI, or what this machine's
    variables say instead. `cache` is a private directory."""

    def __init__(self, indexes: Sequence[str], cache: Path) -> None:
        """Raises ConfigError if uv is not installed."""
        self._program = _program()
        self._indexes, self._cache = tuple(indexes), cache

    def resolve(self, roots: Mapping[str, str], pins: Mapping[str, str]) -> dict[str, str]:
        """Returns the packages that these need, by name, with their versions; `pins` restrict them.
        Raises UvError."""
        self._cache.mkdir(parents=True, exist_ok=True)
        wanted, pinned = self._cache / "roots.in", self._cache / "pins.txt"
        wanted.write_text("".join(f"{name}=={version}\n" for name, version in roots.items()))
        pinned.write_text("".join(f"{name}=={version}\n" for name, version in pins.items()))
        printed = self._run_uv(
            ("pip", "compile", "--quiet", "--no-header", "--no-annotate", "--no-strip-extras"),
            (*_WHEELS, "--python", sys.executable, "--constraint", str(pinned), str(wanted)),
        )
        return dict(re.findall(r"^([a-z0-9-]+)==(\S+)", printed, re.MULTILINE))

    def install(self, requirements: Path, directory: Path, *, is_hashed: bool) -> None:
        """Makes a virtual environment with exactly these packages. Raises UvError."""
        python = ("--python", sys.executable)
        self._run_uv(
            ("venv", "--quiet", "--no-project"), (*python, str(directory)), needs_index=False
        )
        checked = ("--require-hashes",) if is_hashed else ()
        self._run_uv(
            ("pip", "install", "--quiet", "--no-deps", *_WHEELS, *checked),
            ("--python", str(directory / "bin" / "python"), "-r", str(requirements)),
        )

    def _run_uv(
        self, command: tuple[str, ...], more: tuple[str, ...], *, needs_index: bool = True
    ) -> str:
        places = self._index_options() if needs_index else ()
        line = [str(self._program), "--no-config", "--no-progress", "--color", "never"]
        try:
            done = subprocess.run(
                [*line, *command, *places, *more],
                stdin=subprocess.DEVNULL,
                capture_output=True,
                env=self._variables(os.environ),
                cwd=_NOWHERE,
                timeout=_LIMIT_SECONDS,
                check=False,
            )
        except subprocess.TimeoutExpired as error:
            raise UvError(f"uv did not end in {_LIMIT_SECONDS:.0f} s") from error
        except OSError as error:
            raise UvError(f"uv cannot be run ({error.strerror})") from error
        if done.returncode:
            raise UvError(_error_line(done.stderr.decode(errors="replace")))
        return done.stdout.decode(errors="replace")

    def _index_options(self) -> tuple[str, ...]:
        if not self._indexes:
            return ()
        first, *others = self._indexes
        more = (word for index in others for word in ("--index", index))
        return ("--default-index", first, *more)

    def _variables(self, own: Mapping[str, str]) -> dict[str, str]:
        kept = {name: value for name, value in own.items() if _PASSED_ON.fullmatch(name)}
        if not self._indexes:
            if index := own.get("PIP_INDEX_URL"):
                kept["UV_DEFAULT_INDEX"] = index
            kept |= {name: value for name, value in own.items() if _PLACES.fullmatch(name)}
        return absolute_only({**kept, "UV_CACHE_DIR": str(self._cache / "uv")})


def _program() -> Path:
    """Returns our uv, else the one on the PATH."""
    own = Path(sysconfig.get_path("scripts")) / "uv"
    searched = [each for each in os.environ.get("PATH", "").split(os.pathsep) if each[:1] == "/"]
    found = str(own) if own.is_file() else shutil.which("uv", path=os.pathsep.join(searched))
    if not found:
        message = "watch: uv makes the environments, and is not installed. Run: pip install uv"
        raise ConfigError(message)
    return Path(found)


def _error_line(errors: str) -> str:
    """Returns the error on one line, without passwords and drawings."""
    text = " ".join(re.sub(r"[×╰─▶│├]", " ", _PASSWORD.sub("***@", errors)).split())
    return text[:_MAX_SAID] or "uv says nothing"
