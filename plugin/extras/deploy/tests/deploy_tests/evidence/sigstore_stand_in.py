"""An authority, a log of certificates and one of signatures, as Sigstore runs them."""

from __future__ import annotations

import base64
import datetime
import hashlib
import json
import struct

from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.serialization import Encoding, PublicFormat
from cryptography.x509.oid import ExtendedKeyUsageOID

from tunegate_deploy.evidence.envelope import PAYLOAD_TYPE, encode_for_signing

ISSUER = "https://token.actions.githubusercontent.com"
_AT = datetime.datetime(2026, 11, 27, 12, tzinfo=datetime.UTC)
_FROM, _TO = _AT - datetime.timedelta(days=1), _AT + datetime.timedelta(days=1)
_ISSUER_OID = x509.ObjectIdentifier("1.3.6.1.4.1.57264.1.1")
_SCT_OID = x509.ObjectIdentifier("1.3.6.1.4.1.11129.2.4.2")
_LOG = "log.example"


class SigstoreStandIn:
    """Signs as the real one does for a job with this identity."""

    def __init__(self) -> None:
        self._authority, self._certificates, self._log = (
            ec.generate_private_key(ec.SECP256R1()) for _ in range(3)
        )
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        self._root = self._issue(self._authority.public_key(), name, _root_extensions())

    def trusted_root(self) -> str:
        """Returns the file by which its signatures are checked."""

        def log(key: ec.EllipticCurvePrivateKey) -> dict[str, object]:
            known = {"rawBytes": _text(_der(key)), "keyDetails": "PKIX_ECDSA_P256_SHA_256"}
            return {
                "baseUrl": f"https://{_LOG}",
                "hashAlgorithm": "SHA2_256",
                "publicKey": known | {"validFor": {"start": _FROM.isoformat()}},
                "logId": {"keyId": _text(hashlib.sha256(_der(key)).digest())},
            }

        root = {"rawBytes": _text(self._root.public_bytes(Encoding.DER))}
        authority = {
            "subject": {"organization": "stand-in", "commonName": "authority"},
            "uri": "https://authority.example",
            "certChain": {"certificates": [root]},
            "validFor": {"start": _FROM.isoformat()},
        }
        document = {
            "mediaType": "application/vnd.dev.sigstore.trustedroot+json;version=0.1",
            "tlogs": [log(self._log)],
            "certificateAuthorities": [authority],
            "ctlogs": [log(self._certificates)],
            "timestampAuthorities": [],
        }
        return json.dumps(document)

    def bundle(self, payload: bytes, identity: str, issuer: str = ISSUER) -> dict[str, object]:
        """Returns the bundle of a statement that a job of this identity has signed."""
        key = ec.generate_private_key(ec.SECP256R1())
        leaf = self._leaf(key.public_key(), identity, issuer)
        signature = _sign(key, encode_for_signing(PAYLOAD_TYPE, payload))
        certificate = leaf.public_bytes(Encoding.PEM)
        signed = {"signature": _text(signature), "verifier": _text(certificate)}
        nothing = {"algorithm": "sha256", "value": "0" * 64}  # of the file: not checked, as unknown
        body = {
            "apiVersion": "0.0.1",
            "kind": "dsse",
            "spec": {
                "envelopeHash": nothing,
                "payloadHash": nothing | {"value": hashlib.sha256(payload).hexdigest()},
                "signatures": [signed],
            },
        }
        return {
            "mediaType": "application/vnd.dev.sigstore.bundle.v0.3+json",
            "verificationMaterial": {
                "certificate": {"rawBytes": _text(leaf.public_bytes(Encoding.DER))},
                "tlogEntries": [self._entry(json.dumps(body).encode())],
            },
            "dsseEnvelope": {
                "payload": _text(payload),
                "payloadType": PAYLOAD_TYPE,
                "signatures": [{"sig": _text(signature)}],
            },
        }

    def _entry(self, body: bytes) -> dict[str, object]:
        """Returns the entry of a log that has no other."""
        log_id = hashlib.sha256(_der(self._log)).digest()
        at = int(_AT.timestamp())
        promised = {"body": _text(body), "integratedTime": at, "logID": log_id.hex(), "logIndex": 0}
        promise = _sign(self._log, json.dumps(promised, separators=(",", ":")).encode())
        root = hashlib.sha256(b"\0" + body).digest()
        note = f"{_LOG}\n1\n{_text(root)}\n"
        signed = _text(log_id[:4] + _sign(self._log, note.encode()))
        return {
            "logIndex": "0",
            "logId": {"keyId": _text(log_id)},
            "kindVersion": {"kind": "dsse", "version": "0.0.1"},
            "integratedTime": str(at),
            "inclusionPromise": {"signedEntryTimestamp": _text(promise)},
            "inclusionProof": {
                "logIndex": "0",
                "rootHash": _text(root),
                "treeSize": "1",
                "hashes": [],
                "checkpoint": {"envelope": f"{note}\n\u2014 {_LOG} {signed}\n"},
            },
            "canonicalizedBody": _text(body),
        }

    def _leaf(self, key: ec.EllipticCurvePublicKey, identity: str, issuer: str) -> x509.Certificate:
        """Returns a certificate that has the receipt of the log of certificates."""
        parts: list[tuple[x509.ExtensionType, bool]] = [
            (x509.SubjectAlternativeName([x509.UniformResourceIdentifier(identity)]), True),
            (x509.ExtendedKeyUsage([ExtendedKeyUsageOID.CODE_SIGNING]), False),
            (_usage(digital_signature=True), True),
            (
                x509.AuthorityKeyIdentifier.from_issuer_public_key(self._authority.public_key()),
                False,
            ),
            (x509.UnrecognizedExtension(_ISSUER_OID, issuer.encode()), False),
        ]
        nobody = x509.Name([])
        before = self._issue(key, nobody, parts).tbs_certificate_bytes
        milliseconds = int(_AT.timestamp() * 1000)
        entry = hashlib.sha256(_der(self._authority)).digest() + struct.pack("!I", len(before))[1:]
        signed = struct.pack("!BBQH", 0, 0, milliseconds, 1) + entry + before + b"\0\0"
        signature = _sign(self._certificates, signed)
        log_id = hashlib.sha256(_der(self._certificates)).digest()
        receipt = b"\0" + log_id + struct.pack("!QHBBH", milliseconds, 0, 4, 3, len(signature))
        receipt = struct.pack("!H", len(receipt + signature)) + receipt + signature
        listed = struct.pack("!H", len(receipt)) + receipt
        octets = b"\x04" + bytes([len(listed)]) + listed  # shorter than 128
        receipts = (x509.UnrecognizedExtension(_SCT_OID, octets), False)
        return self._issue(key, nobody, [*parts, receipts])

    def _issue(
        self,
        key: ec.EllipticCurvePublicKey,
        subject: x509.Name,
        parts: list[tuple[x509.ExtensionType, bool]],
    ) -> x509.Certificate:
        name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "authority")])
        builder = x509.CertificateBuilder(name, subject, key, 7, _FROM, _TO)
        for part, critical in parts:
            builder = builder.add_extension(part, critical)
        return builder.sign(self._authority, hashes.SHA256())


def _root_extensions() -> list[tuple[x509.ExtensionType, bool]]:
    return [
        (x509.BasicConstraints(ca=True, path_length=0), True),
        (_usage(key_cert_sign=True), True),
    ]


def _usage(*, digital_signature: bool = False, key_cert_sign: bool = False) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=digital_signature,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=key_cert_sign,
        crl_sign=False,
        encipher_only=False,
        decipher_only=False,
    )


def _sign(key: ec.EllipticCurvePrivateKey, message: bytes) -> bytes:
    return key.sign(message, ec.ECDSA(hashes.SHA256()))


def _der(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.public_key().public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)


def _text(content: bytes) -> str:
    return base64.b64encode(content).decode()
