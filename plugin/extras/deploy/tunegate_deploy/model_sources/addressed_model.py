"""The ports of the deploy gate: a model that lives at an address, and one whose address is a name
that can be moved to another version."""

from __future__ import annotations

from pathlib import Path
from typing import Protocol, runtime_checkable

from tunegate.wording import PAGES
from tunegate_deploy.model_sources.download_limits import ByteCount

PAGE = f"{PAGES.removesuffix('/docs')}/plugin/extras/deploy/README.md"
"""The address of the page that says which addresses there are, for a message."""


class AddressedModel(Protocol):
    """One address, as the user wrote it.

    **Pinning.** `resolve` is asked first and once; `download` brings what it found, whatever the
    address names by then.

    **Faults.** Each method raises ConfigError for what the user has to change (no such version,
    no credentials), ModelError for content that is no model, and EnvironmentUnfitError for a server
    that does not answer. No message holds a credential.
    """

    @property
    def shown(self) -> str:
        """The address without what may be secret in it: its query."""
        ...

    def resolve(self) -> str:
        """Returns the version that the address names now, in the source's own words."""
        ...

    def download(self, into: Path, count: ByteCount) -> Path:
        """Brings the model with its data files into an empty directory. Returns the ONNX file, or
        the directory where it is an artifact of ours. `count` is told of each piece."""
        ...


@runtime_checkable
class MovableModel(AddressedModel, Protocol):
    """A name such as an alias or a tag."""

    def require_movable_to(self, candidate: AddressedModel) -> None:
        """Asks nobody. Raises ConfigError where the name cannot be moved to that model."""
        ...

    def move_to(self, candidate: AddressedModel, downloaded: Path) -> str:
        """Moves the name to the candidate as it was resolved, unless it names something else than
        what `resolve` found. Returns what it names now. Raises EnvironmentUnfitError where it was
        moved meanwhile."""
        ...
