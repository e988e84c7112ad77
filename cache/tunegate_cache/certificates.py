"""Why the certificate of a server is not trusted, from what the libraries above OpenSSL raise."""

from __future__ import annotations

import re

_REASON = re.compile(r"certificate verify failed: ([\w ,.'-]{1,120})")


def untrusted_reason(error: BaseException) -> str | None:
    """Returns OpenSSL's reason, such as "unable to get local issuer certificate". None for all
    other errors."""
    found = _REASON.search(str(error))
    return found[1].strip() if found else None
