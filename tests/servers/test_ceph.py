"""The bucket store against a gateway of Ceph, where one is installed."""

import itertools
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.cache.stores.store_contract import MaintainedStoreContract
from tests.support.programs import require
from tests.support.servers.ceph import PROGRAMS, ceph_gateway
from tests.support.servers.moto_server import BUCKET
from tests.support.two_runs import KNOWN, NEW, PATIENT, Place
from tunegate_cache.format.records import ExactHit
from tunegate_cache.stores.s3 import S3Store
from tunegate_cache.stores.store import MaintainedStore, StoreUnavailableError

_prefixes = itertools.count()


@pytest.fixture(scope="module")
def ceph_url() -> Iterator[str]:
    require(*PROGRAMS)
    with ceph_gateway() as url:
        yield url


class TestS3StoreOnCeph(MaintainedStoreContract):
    @pytest.fixture
    def store(self, ceph_url: str, credentials: None) -> MaintainedStore:
        return over(ceph_url)


def test_a_missing_bucket_is_unavailable_on_ceph_too(ceph_url: str, credentials: None) -> None:
    store = S3Store("absent", "", endpoint_url=ceph_url, region="us-east-1")
    with pytest.raises(StoreUnavailableError, match=r"^s3://absent: NoSuchBucket$"):
        store.names("a/")


def test_ceph_returns_what_it_is_given(ceph_url: str, credentials: None, tmp_path: Path) -> None:
    store = over(ceph_url)
    place = Place(store, "main", tmp_path)
    place.fill()
    outcome = place.run(store, PATIENT, lambda: 0)
    assert outcome.published
    assert outcome.healed == {record.key: ExactHit((record,)) for record in [*KNOWN, NEW]}


def over(url: str) -> S3Store:
    """An empty prefix."""
    return S3Store(BUCKET, f"test-{next(_prefixes)}", endpoint_url=url, region="us-east-1")
