"""The bucket store against servers that answer as those of others do."""

from pathlib import Path

import boto3
import pytest

from tests.support.servers import other_s3
from tests.support.servers.fault_proxy import Exchange, FaultProxy, fault_proxy
from tests.support.servers.moto_server import BUCKET
from tests.support.servers.own_authority import own_authority
from tunegate_cache.stores.conformance import probe
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import (
    AccessDeniedError,
    ObjectConflictError,
    PointerMovedError,
    StoreUnavailableError,
    UnsupportedRequestError,
)


def test_a_public_bucket_is_read_without_credentials(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch
) -> None:
    over(endpoint).write("private/1", b"x")
    client = boto3.session.Session().client("s3", endpoint_url=endpoint, region_name="us-east-1")
    client.put_object(Bucket=BUCKET, Key="team/y/public/1", Body=b"x", ACL="public-read")
    _forget_credentials(monkeypatch)
    with fault_proxy(endpoint) as (url, proxy):
        signed = _headers_of(proxy)
        proxy.spoil("put", "", other_s3.no_signature_no_write)
        store = over(url)
        assert store.read("public/1") == b"x"
        assert store.names("public/") == ["public/1"]
        assert not any("authorization" in headers for headers in signed)
        with pytest.raises(AccessDeniedError, match="403, asked without credentials"):
            store.read("private/1")
        with pytest.raises(AccessDeniedError) as caught:
            store.write("public/2", b"x")
    assert str(caught.value) == (
        "s3://tuning: AccessDenied, asked without credentials: none were found"
    )
    assert "aws sso login" in caught.value.advice[0]


def test_a_server_without_conditions_is_written_and_says_so(endpoint: str, bucket: S3Store) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", other_s3.no_conditions)
        store = over(url)
        store.write("plain/1", b"x")
        store.write("plain/1", b"x")
        with pytest.raises(ObjectConflictError):
            store.write("plain/1", b"y")
        assert store.read("plain/1") == b"x"
        store.move_pointer("plain/HEAD", b"1", None)
        with pytest.raises(PointerMovedError):
            store.move_pointer("plain/HEAD", b"2", None)
        tag = store.read_pointer("plain/HEAD").tag
        store.move_pointer("plain/HEAD", b"2", tag)
        with pytest.raises(PointerMovedError):
            store.move_pointer("plain/HEAD", b"3", tag)
        (remark,) = store.remarks
        (told,) = (each.detail for each in probe(over(url)) if each.detail == remark)
    assert "does not implement If-None-Match" in told


def test_the_users_own_checksums_win_and_other_addresses_get_none(
    endpoint: str, bucket: S3Store, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", other_s3.no_checksums)
        monkeypatch.setenv("AWS_ENDPOINT_URL_S3", url)
        by_variable = S3Store(BUCKET, "sums", endpoint_url=None, region="us-east-1")
        by_variable.write("a/1", b"x")
        assert proxy.met[""] == 1
        monkeypatch.setenv("AWS_REQUEST_CHECKSUM_CALCULATION", "when_supported")
        with pytest.raises(UnsupportedRequestError) as caught:
            over(url).write("a/2", b"x")
        assert "AWS_REQUEST_CHECKSUM_CALCULATION=when_required" in caught.value.advice[0]
        monkeypatch.delenv("AWS_REQUEST_CHECKSUM_CALCULATION")
        profile = tmp_path / "config"
        profile.write_text("[default]\nrequest_checksum_calculation = when_supported\n")
        monkeypatch.setenv("AWS_CONFIG_FILE", str(profile))
        with pytest.raises(UnsupportedRequestError):
            over(url).write("a/3", b"x")


def test_a_bucket_that_wants_encryption_is_written_with_it(endpoint: str, bucket: S3Store) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("put", "", other_s3.only_encrypted("aws:kms"))
        with pytest.raises(AccessDeniedError):
            over(url).write("sse/1", b"x")
        S3Store(
            BUCKET, "sse", endpoint_url=url, region="us-east-1", sse="aws:kms", sse_kms_key="key"
        ).write("1", b"x")


def test_a_clock_that_is_off_is_told_as_one(endpoint: str, credentials: None) -> None:
    with fault_proxy(endpoint) as (url, proxy):
        proxy.spoil("get", "", other_s3.skewed(62))
        with pytest.raises(StoreUnavailableError) as caught:
            over(url).read("a/1")
    assert str(caught.value) == (
        "s3://tuning: RequestTimeTooSkewed, the clock of this machine is 62 minutes ahead of the "
        "server's"
    )
    assert caught.value.advice[0].startswith("set the clock")


def test_an_unknown_certificate_authority_is_named(tmp_path: Path, credentials: None) -> None:
    with own_authority(tmp_path) as url, pytest.raises(StoreUnavailableError) as caught:
        over(url).read("a/1")
    assert str(caught.value).startswith(
        "s3://tuning: the server's certificate is not trusted (self"
    )
    assert "AWS_CA_BUNDLE" in caught.value.advice[0]


def over(url: str) -> S3Store:
    return S3Store(BUCKET, "team/y", endpoint_url=url, region="us-east-1")


def _forget_credentials(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_PROFILE"):
        monkeypatch.delenv(name, raising=False)


def _headers_of(proxy: FaultProxy) -> list[set[str]]:
    """Collects the names of the headers of each request that reads."""
    seen: list[set[str]] = []

    def note(exchange: Exchange) -> None:
        seen.append({name.lower() for name in exchange.request.headers})
        exchange.send(exchange.forward())

    proxy.spoil("get", "", note)
    proxy.spoil("list", "", note)
    return seen
