"""Explains S3's refusals: the kind of trouble, its cause in one line, and what to do.

A message contains only an error's code: some texts contain signed addresses.
"""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from typing import Any

from tunegate_cache.certificates import untrusted_reason
from tunegate_cache.stores.store import (
    AccessDeniedError,
    ObjectConflictError,
    RefusedConditionError,
    StoreBusyError,
    StoreUnavailableError,
    UnsupportedRequestError,
)

_CODE = re.compile(r"[A-Za-z][A-Za-z0-9.]{0,99}|[0-9]{3}")
ABSENT_CODES = frozenset({"NoSuchKey", "404", "NotFound"})
_DENIED = {"ExpiredToken", "InvalidToken", "TokenRefreshRequired"}
"""Refusals that S3 sends with status 400."""
_SKEWED = {"RequestTimeTooSkewed", "RequestExpired"}
_CHECKSUM = {
    *("XAmzContentSHA256Mismatch", "BadDigest", "InvalidDigest", "MissingContentLength"),
    *("XAmzContentChecksumMismatch", "InvalidRequest", "InvalidArgument", "NotImplemented", "501"),
}
"""Answers to an upload whose checksum the server does not know; some have other meanings, too."""

_ClientError = Any
"""A botocore ClientError; the library ships no types."""

GIVE_CREDENTIALS = (
    "give this shell credentials: aws sso login, AWS_ACCESS_KEY_ID and "
    "AWS_SECRET_ACCESS_KEY, or a role (docs/aws)"
)
_ENCRYPTION = (
    "set cache.sse to what the bucket asks for, and cache.sse-kms-key to a key that these "
    "credentials may use"
)
_OTHER_CHECKSUMS = {
    True: (
        "the server may not know S3's newer checksums: set "
        "AWS_REQUEST_CHECKSUM_CALCULATION=when_required"
    ),
    False: (
        "the server, or object lock, may ask for checksums: set "
        "AWS_REQUEST_CHECKSUM_CALCULATION=when_supported"
    ),
}
"""The advice by whether checksums are sent."""


class BeyondEndError(StoreUnavailableError):
    """The object ends before the part that was asked for. An empty object has no part at all."""


_KINDS: dict[int, type[StoreUnavailableError]] = {
    401: AccessDeniedError,
    403: AccessDeniedError,
    409: ObjectConflictError,
    412: RefusedConditionError,
    416: BeyondEndError,
    429: StoreBusyError,
    501: UnsupportedRequestError,
    503: StoreBusyError,
}


def error_of(
    error: _ClientError, where: str, *, is_signed: bool, sends_checksums: bool
) -> StoreUnavailableError:
    """Returns the store's error for one of the SDK."""
    response = error.response
    code, status = code_of(response), _status(response)
    kind = _kind(code, status)
    if code in _SKEWED:
        cause = f"the clock of this machine is {_skew(response)}"
        text = f"{where}: {code}, {cause}"
        return StoreUnavailableError(text, advice=(f"set the clock: {cause}",))
    if not is_signed and kind is AccessDeniedError:
        text = f"{where}: {code}, asked without credentials: none were found"
        return kind(text, advice=(GIVE_CREDENTIALS,))
    is_upload = error.operation_name == "PutObject"
    advice = _upload_advice(code, sends_checksums=sends_checksums) if is_upload else ()
    return kind(f"{where}: {code}", advice=advice)


def tls_error(error: Exception, where: str) -> StoreUnavailableError:
    """Returns the error for a TLS error: of the server's certificate, or of another kind."""
    reason = untrusted_reason(error)
    if reason is None:
        return StoreUnavailableError(f"{where}: SSLError")
    advice = "set AWS_CA_BUNDLE to a file with the certificate authority that signed the server's"
    text = f"{where}: the server's certificate is not trusted ({reason})"
    return StoreUnavailableError(text, advice=(advice,))


def code_of(response: Mapping[str, Any]) -> str:
    """Returns S3's code, such as `NoSuchKey`; the status instead of a text that is none, since that
    may hold whatever was sent to the server."""
    code = str(response.get("Error", {}).get("Code", "unknown"))
    return code if _CODE.fullmatch(code) else str(_status(response))


def _status(response: Mapping[str, Any]) -> int:
    return int(response.get("ResponseMetadata", {}).get("HTTPStatusCode", 0))


def _kind(code: str, status: int) -> type[StoreUnavailableError]:
    if code in _DENIED:
        return AccessDeniedError
    if code == "NotImplemented":
        return UnsupportedRequestError
    return _KINDS.get(status, StoreUnavailableError)


def _upload_advice(code: str, *, sends_checksums: bool) -> tuple[str, ...]:
    if code.startswith(("KMS.", "ServerSideEncryption")):
        return (_ENCRYPTION,)
    if code not in _CHECKSUM:
        return ()
    return _OTHER_CHECKSUMS[sends_checksums], f"where the encryption is refused, {_ENCRYPTION}"


def _skew(response: Mapping[str, Any]) -> str:
    """Returns how far the clock is off, by the answer's date."""
    headers = response.get("ResponseMetadata", {}).get("HTTPHeaders", {})
    try:
        theirs = parsedate_to_datetime(str(headers.get("date", ""))).timestamp()
    except ValueError:
        return "off"
    minutes = (time.time() - theirs) / 60
    if abs(minutes) < 1:
        return "off"
    return f"{abs(minutes):.0f} minutes {'ahead of' if minutes > 0 else 'behind'} the server's"
