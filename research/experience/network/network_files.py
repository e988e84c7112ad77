"""The two files of a trained network, written and read: they may be another's."""

from __future__ import annotations

import hashlib
from pathlib import Path

from research.experience.network.body_model import BodyError, body_of
from research.experience.network.network_card import NetworkCard, problem_of_card
from research.experience.network.network_ranker import NetworkBody
from tunegate.artifacts import artifact_io
from tunegate.errors import ArtifactError
from tunegate.regular_files import read_regular

BODY, CARD = "network.onnx", "network.json"
_ADVICE = "Train it again: tunegate experience train."


def write_network(directory: Path, body: bytes, card: NetworkCard) -> None:
    """Raises OutputError."""
    artifact_io.write_bytes(directory / BODY, body)
    artifact_io.write(directory / CARD, card)


def read_network(directory: Path) -> tuple[NetworkBody, NetworkCard]:
    """Raises ArtifactError for files that are missing, were changed, or are out of bounds."""
    card = artifact_io.read(directory / CARD, NetworkCard)
    if problem := problem_of_card(card):
        raise ArtifactError(f"{directory / CARD}: {problem}. {_ADVICE}")
    path = directory / BODY
    try:
        body = read_regular(path)
        if hashlib.sha256(body).hexdigest() != card.body_sha256:
            raise ArtifactError(f"{path}: not the body that {CARD} is of. {_ADVICE}")
        return body_of(body), card
    except OSError as error:
        raise ArtifactError(f"{path}: cannot be read ({error.strerror}). {_ADVICE}") from error
    except BodyError as error:
        raise ArtifactError(f"{path}: {error}. {_ADVICE}") from error
