"""The private key that signs what a run writes: from the environment, and never shown."""

from __future__ import annotations

import os

from tunegate.errors import ConfigError
from tunegate_cache.format.signing import BadKeyError, Signer, signer_from_pem

VARIABLE = "TUNEGATE_SIGNING_KEY"


def signing_key() -> Signer | None:
    """Raises ConfigError where the variable holds something else."""
    pem = os.environ.get(VARIABLE, "")
    if not pem.strip():
        return None
    try:
        return signer_from_pem(pem)
    except BadKeyError as error:
        raise ConfigError(f"{VARIABLE}: {error}.") from error
