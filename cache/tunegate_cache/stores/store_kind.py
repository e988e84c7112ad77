"""A kind of store and its addresses: the value of an entry point of the group `tunegate.stores`."""

from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlsplit

import msgspec

from tunegate_cache.stores.store import MaintainedStore


class StoreAddress(msgspec.Struct, frozen=True, kw_only=True):
    """The address of a store as configured (`cache.url`, `cache.endpoint-url`, `cache.region`), and
    its encryption (`cache.sse`, `cache.sse-kms-key`)."""

    url: str
    endpoint_url: str | None = None
    region: str | None = None
    sse: str | None = None
    sse_kms_key: str | None = None

    @property
    def parts(self) -> SplitResult:
        """The parts of `url`. Raises ValueError if it is no URL."""
        return urlsplit(self.url)


class StoreKind(msgspec.Struct, frozen=True, kw_only=True):
    """One kind of store. The name of its entry point is the scheme of its addresses.

    `form` shows users what to write. `accepts` says whether an address is complete, by the address
    alone. `open` sends no request. This machine keeps copies of a remote store's objects. `advice`
    says what to check when the store does not answer. `encryptions` are the known values of `sse`.
    `usd_per_1000_requests` are list prices by verb (get, put, list), which do not apply to private
    endpoints.
    """

    form: str
    accepts: Callable[[StoreAddress], bool]
    open: Callable[[StoreAddress], MaintainedStore]
    is_remote: bool
    advice: tuple[str, ...] = ()
    encryptions: tuple[str, ...] = ()
    usd_per_1000_requests: Mapping[str, float] | None = None
