"""A bundle of Sigstore, such as an attestation of GitHub: a certificate that names the CI job signs
the statement, and a public log has the signature. The package `sigstore` checks it offline."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType
from typing import Annotated, Any, NamedTuple

import msgspec
from cryptography.x509 import Certificate, SubjectAlternativeName

from tunegate.artifacts.artifact_io import NOT_JSON
from tunegate.errors import ConfigError
from tunegate_deploy.evidence.envelope import EvidenceError, read_statement
from tunegate_deploy.evidence.statement import Statement

_MEDIA_TYPE = "application/vnd.dev.sigstore.bundle"
_CLIENTS = ("requests", "sigstore._internal.tuf")
_LONGEST = 300
_TESTED = "4."
_INSTALL = "Run: python -m pip install 'tunegate-deploy[sigstore]'"
_Name = Annotated[str, msgspec.Meta(min_length=1)]  # an empty issuer would be any issuer


class Identity(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A signer: the address of a workflow at a ref, as its certificate has it, and the `issuer` of
    its token."""

    identity: _Name
    issuer: _Name


class _Kind(msgspec.Struct):
    media_type: str = msgspec.field(name="mediaType", default="")


def is_bundle(evidence: bytes) -> bool:
    """Returns whether this is a bundle, and not a bare envelope."""
    try:
        return msgspec.json.decode(evidence, type=_Kind).media_type.startswith(_MEDIA_TYPE)
    except NOT_JSON:
        return False


def verified_bundle(evidence: bytes, signers: Sequence[Identity], trusted_root: Path) -> Statement:
    """Returns the statement of a bundle signed by one of these, by the certificates and logs of a
    trusted root. Raises EvidenceError, and ConfigError for the root or a missing package."""
    if not signers:
        raise EvidenceError(
            "a bundle of Sigstore, and the policy has no identities. Add its signer."
        )
    if find_spec("sigstore") is None:
        raise ConfigError(
            f"a bundle of Sigstore is read by a package that is not installed. {_INSTALL}"
        )
    package = _import_sigstore()
    try:
        verifier = package.Verifier(trusted_root=package.TrustedRoot.from_file(str(trusted_root)))
    except Exception as error:  # the package passes on errors of several others
        raise ConfigError(f"{trusted_root}: no trusted root ({_first_line(error)}).") from error
    try:
        bundle = package.Bundle.from_json(evidence)
        payload_type, payload = verifier.verify_dsse(bundle, _AnyOf(signers))
    except Exception as error:  # hostile certificates raise what the parsers raise
        if not _version().startswith(_TESTED):
            raise _unfit_package(error) from error
        raise EvidenceError(
            f"not signed by whom the policy names: {_first_line(error)}."
        ) from error
    return read_statement(payload_type, payload)


class _Package(NamedTuple):
    """The parts of the package `sigstore` that a check needs."""

    Bundle: Any
    TrustedRoot: Any
    Verifier: Any


def _import_sigstore() -> _Package:
    """Returns the package without its clients of a network, or with them where it does not start
    otherwise. Raises ConfigError."""
    try:
        with _without_clients():
            return _import()
    except Exception:  # noqa: BLE001 -- another version may need them as it is imported
        for name in [each for each in sys.modules if each.partition(".")[0] == "sigstore"]:
            del sys.modules[name]
    try:
        return _import()
    except Exception as error:
        raise _unfit_package(error) from error


def _import() -> _Package:
    from sigstore.models import Bundle, TrustedRoot  # noqa: PLC0415
    from sigstore.verify import Verifier  # noqa: PLC0415

    return _Package(Bundle, TrustedRoot, Verifier)


def _unfit_package(error: Exception) -> ConfigError:
    return ConfigError(
        f"the package sigstore {_version()} does not check this bundle ({_first_line(error)}). "
        f"{_INSTALL}"
    )


def _version() -> str:
    try:
        return version("sigstore")
    except PackageNotFoundError:
        return "of an unknown version"


@contextmanager
def _without_clients() -> Iterator[None]:
    """Imports the package without its clients of a network, nearly half of the time that a check
    takes. The file of a trusted root stands for what they would bring; a call of one fails."""
    absent = [name for name in _CLIENTS if name not in sys.modules]
    sys.modules.update({name: _Unused(name) for name in absent})
    try:
        yield
    finally:
        for name in absent:
            del sys.modules[name]


class _Unused(ModuleType):
    """A module whose content is there for `from … import`, and is of no use."""

    def __getattr__(self, name: str) -> object:
        if name.startswith("__") and name != "__version__":
            raise AttributeError(name)
        return object()


class _AnyOf:
    """The package's policy of this name does not say who has signed."""

    def __init__(self, signers: Sequence[Identity]) -> None:
        self._signers = signers

    def verify(self, cert: Certificate) -> None:
        from sigstore.errors import VerificationError  # noqa: PLC0415
        from sigstore.verify import policy  # noqa: PLC0415

        wanted = [policy.Identity(identity=x.identity, issuer=x.issuer) for x in self._signers]
        try:
            policy.AnyOf([*wanted]).verify(cert)
        except VerificationError as error:
            names = cert.extensions.get_extension_for_class(SubjectAlternativeName).value
            shown = ", ".join(str(each.value) for each in names)
            message = f"it is by {shown}, or by another issuer"
            raise VerificationError(message) from error


def _first_line(error: Exception) -> str:
    lines = str(error).strip().splitlines() or [type(error).__name__]
    return lines[0][:_LONGEST].rstrip(".")
