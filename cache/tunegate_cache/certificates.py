"""The reason why a server's certificate is not trusted, from errors of the libraries above
OpenSSL."""

import ssl
from collections.abc import Iterator

_MAX_ERRORS = 32


def untrusted_reason(error: BaseException) -> str | None:
    """Returns OpenSSL's reason, such as "unable to get local issuer certificate", None for all
    other errors."""
    for each in _within(error):
        if isinstance(each, ssl.SSLCertVerificationError):
            return each.verify_message
    return None


def _within(error: BaseException) -> Iterator[BaseException]:
    """Yields the error and those it wraps: each library keeps the one below it somewhere else."""
    pending: list[object] = [error]
    for _ in range(_MAX_ERRORS):
        if not pending:
            return
        each = pending.pop()
        if isinstance(each, BaseException):
            yield each
            pending += [each.__cause__, each.__context__, getattr(each, "reason", None), *each.args]
            pending += getattr(each, "kwargs", {}).values()
