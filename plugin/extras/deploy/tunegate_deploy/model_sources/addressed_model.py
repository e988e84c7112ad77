"""The ports of the deploy gate: a model at an address, and one whose address is a name that can be
moved to another version."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from tunegate.wording import PAGES
from tunegate_deploy.model_sources.download_limits import ByteCount

PAGE = f"{PAGES.removesuffix('/docs')}/plugin/extras/deploy/README.md"
"""The page that explains addresses, for messages."""


class AddressedModel(Protocol):
    """One address, as the user wrote it.

    **Pinning.** `resolve` is called first and once; `download` fetches what it found, whatever the
    address names by then.

    **Faults.** Each method raises ConfigError for what the user has to change (no such version, no
    credentials), ModelError for content that is no model, and EnvironmentUnfitError for a server
    that does not answer. No message contains a credential.
    """

    @property
    def address(self) -> str:
        """The address without its query, which may be secret."""
        ...

    def resolve(self) -> str:
        """Returns the version that the address names now, in the source's own words."""
        ...

    def download(self, into: Path, count: ByteCount) -> Path:
        """Downloads the model with its data files into an empty directory. Returns the ONNX file,
        or the directory of an artifact of ours. `count` gets the size of each piece."""
        ...


@runtime_checkable
class MovableModel(AddressedModel, Protocol):
    """A name such as an alias or a tag."""

    def require_movable_to(self, candidate: AddressedModel) -> None:
        """Raises ConfigError if the name cannot be moved to that model; sends no request."""
        ...

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        """Moves the name to the candidate as resolved, unless the name has changed since `resolve`.
        Returns what it names now. Raises EnvironmentUnfitError if it was moved meanwhile."""
        ...
