"""Libraries with operators that ONNX Runtime does not bring: the file of each, by its digest.

A library is native code. Only one that a merged configuration names is loaded, and only the very
bytes that it names: a copy that nobody else can write, alone in its folder, so that it finds no
other library beside itself.
"""

import hashlib
import os
import sys
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path

from tunegate.config import OperatorLibraryConfig
from tunegate.errors import ConfigError, ModelError
from tunegate.system.output.temporary_folder import TemporaryFolder

USUAL_LIBRARY = "onnxruntime_extensions"
Libraries = Sequence[OperatorLibraryConfig]
_ENDINGS = ("*.so", "*.dylib", "*.dll")


def library_files(libraries: Libraries) -> list[Path]:
    """Returns a copy of each library for this process, one for equal contents. Raises ModelError
    for one that is not here, or is another file than the configuration says."""
    return [*dict.fromkeys(_copy(library) for library in libraries)]


def _copy(library: OperatorLibraryConfig) -> Path:
    others: dict[str, Path] = {}
    for file in files_of(library.library):
        content = file.read_bytes()
        digest = hashlib.sha256(content).hexdigest()
        if digest == library.sha256:
            folder = Path(_copies().name) / digest
            if not folder.exists():  # a loaded library is never written again
                folder.mkdir()
                (folder / file.name).write_bytes(content)
            return next(folder.iterdir())
        others[digest] = file
    entry = f"{library.library} with the SHA-256 {library.sha256[:12]}…"
    here = ", ".join(f"{path.name} has {digest}" for digest, path in others.items())
    message = f"custom-operators names {entry}, and {here or 'there is none on this machine'}"
    raise ModelError(message)


@cache
def _copies() -> TemporaryFolder:
    """Returns the folder of the copies, which goes with the process."""
    return TemporaryFolder()


def files_of(library: str) -> Iterator[Path]:
    """Yields the files that may be the library: itself, or those of the package, which is not
    imported."""
    if Path(library).is_absolute():
        if Path(library).is_file():
            yield Path(library)
        return
    for place in dict.fromkeys(sys.path):
        for ending in _ENDINGS:
            yield from sorted((Path(place) / library).rglob(ending))


def digest_of_file(file: Path) -> str:
    """Returns the SHA-256."""
    with file.open("rb") as stream:
        return hashlib.file_digest(stream, "sha256").hexdigest()


def require_outside(libraries: Libraries, checkout: Path) -> Libraries:
    """Returns the libraries. Raises ConfigError for one in the checkout, where a change could put
    other code at any time."""
    for library in libraries:
        if Path(library.library).is_absolute() and _is_inside(Path(library.library), checkout):
            message = (
                f"custom-operators: {library.library} lies in the checkout, and code of a checkout "
                "is never loaded. Install it on the runner."
            )
            raise ConfigError(message)
    return libraries


def _is_inside(file: Path, checkout: Path) -> bool:
    # `resolve` raises for links in a circle.
    places = (file.absolute(), Path(os.path.realpath(file)))
    return any(place.is_relative_to(checkout.resolve()) for place in places)


def select_by_digest(libraries: Libraries, digests: Sequence[str]) -> Libraries:
    """Returns the libraries with these digests, which an artifact was built with. Raises ModelError
    where the configuration does not name one."""
    library_of = {library.sha256: library for library in libraries}
    for digest in digests:
        if digest not in library_of:
            message = f"it was built with the library {digest[:12]}…, which custom-operators lacks"
            raise ModelError(message)
    return [library_of[digest] for digest in digests]
