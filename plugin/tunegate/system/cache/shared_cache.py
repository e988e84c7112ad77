"""An implementation of `ports.TaskIndex` over the shared cache."""

import os
import time
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path

from tunegate.artifacts.tasks import CacheUse
from tunegate.config import DEFAULT_CACHE_URL, CacheConfig
from tunegate.errors import ConfigError
from tunegate.ports import TaskIndex
from tunegate.redaction import redact
from tunegate.regular_files import working_tree
from tunegate.system.cache.snapshot_pins import SnapshotPins, read_pins
from tunegate.system.git.checkout import first_tracked
from tunegate.wording import plural
from tunegate_cache.format.cache_statistics import usd_of
from tunegate_cache.format.names import parse_segment, zone_problem
from tunegate_cache.format.records import (
    DeviceFingerprint,
    ExactHit,
    Lookup,
    Toolchain,
    TransferHit,
    TuningRecord,
    WorkloadKey,
    WorkloadShape,
)
from tunegate_cache.format.signing import BadKeyError, Signer, TrustedKeys, signer_from_pem
from tunegate_cache.protocol.rollback_guard import RollbackGuard
from tunegate_cache.protocol.trust import Trust
from tunegate_cache.protocol.tuning_cache import TuningCache, Zones
from tunegate_cache.protocol.uploads import WriteAhead
from tunegate_cache.stores import open_store as stores
from tunegate_cache.stores.files import FileStore
from tunegate_cache.stores.store import MaintainedStore, StoreUnavailableError
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

_SHOWN = 3


class SharedCache:
    """The cache of one run. `state` is a local directory for undelivered records and seen heads,
    `copies` one for what was read (None: the same)."""

    def __init__(
        self,
        config: CacheConfig,
        *,
        state: Path,
        root: Path,
        copies: Path | None = None,
        device: DeviceFingerprint | None = None,
        toolchain: Toolchain | None = None,
        pins: SnapshotPins | None = None,
    ) -> None:
        """A relative directory in `config` lies under `root`; times of `device`, of those the ones
        of `toolchain`, rank before others. `pins` None are those of the checkout. Raises
        ConfigError."""
        _require_zone("cache.zone", config.zone)
        for zone in config.read_zones:
            _require_zone("cache.read-zones", zone)
        self._config = config
        self._kind = store_kind(config, root=root)
        place = stores.store_name(_address(config, root))
        self._store = open_shared_store(config, root=root)
        self._cache = TuningCache(
            self._store,
            zones=Zones(config.zone, config.read_zones),
            mode=config.mode,
            write_ahead=WriteAhead(state / "undelivered" / place),
            monotonic=time.monotonic,
            milliseconds=lambda: int(time.time() * 1000),
            tier=FileStore((copies or state) / "tier" / place) if self._kind.is_remote else None,
            device=device,
            toolchain=toolchain,
            trust=Trust(
                keys=TrustedKeys(config.trusted_keys),
                signer=signing_key(),
                pins=read_pins(root) if pins is None else pins,
                seen=RollbackGuard(state / "seen" / f"{place}.json"),
            ),
        )

    def lookup(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, Lookup]:
        return self._cache.lookup(workloads, fastest)

    def claims(
        self,
        workloads: Sequence[tuple[WorkloadKey, WorkloadShape]],
        fastest: Mapping[WorkloadKey, int] | None = None,
    ) -> Mapping[WorkloadKey, ExactHit | TransferHit]:
        return self._cache.claims(workloads, fastest)

    def standings(self, keys: Sequence[WorkloadKey]) -> Mapping[WorkloadKey, Lookup]:
        return self._cache.standings(keys)

    def targets(self) -> frozenset[str]:
        return self._cache.targets()

    def publish(self, records: Sequence[TuningRecord]) -> bool:
        return self._cache.publish(records)

    def enqueue(self, records: Sequence[TuningRecord]) -> bool:
        return self._cache.enqueue(records)

    def flush(self, seconds: float) -> int:
        return self._cache.flush(seconds)

    def use(self) -> CacheUse:
        statistics = self._cache.statistics
        refusals = (_refusal(count, reason) for reason, count in statistics.refused.items())
        remarks = (f"cache: {remark}" for remark in getattr(self._store, "remarks", ()))
        return CacheUse(
            location=redact(self._config.url, ()),
            zone=self._config.zone,
            mode=self._config.mode,
            exact=statistics.exact,
            transfer=statistics.transfer,
            misses={str(reason): count for reason, count in statistics.misses.items()},
            requests=sum(statistics.requests.values()),
            bytes_read=statistics.bytes_read,
            seconds=statistics.seconds,
            usd=self._usd(statistics.requests),
            notes=(*statistics.notes, *remarks, *refusals, *self._helpers(statistics.served)),
        )

    def _helpers(self, uses: Counter[tuple[str, str]]) -> Iterator[str]:
        """Yields a note on the zones and repositories whose records serve this run; none where
        nobody but this zone helped, outside of CI."""
        pairs = [
            (f"{repository} in zone {zone}" if repository else f"zone {zone}", count)
            for (zone, repository), count in uses.most_common()
            if repository or zone != self._config.zone
        ]
        if pairs:
            served_by = (f"{name} serve {plural(count, 'task')}" for name, count in pairs[:_SHOWN])
            rest = f" and {len(pairs) - _SHOWN} more" if len(pairs) > _SHOWN else ""
            yield f"cache: records of {', '.join(served_by)}{rest}"

    def _usd(self, requests: Mapping[str, int]) -> float | None:
        """Returns the cost; list prices say nothing about a private endpoint."""
        prices = self._kind.usd_per_1000_requests
        if prices is None or self._config.endpoint_url:
            return None
        return usd_of(requests, prices)


def _require_zone(key: str, zone: str) -> None:
    problem = zone_problem(zone)
    if problem is not None:
        raise ConfigError(f"{key}: {problem}.")


def _refusal(count: int, reason: str) -> str:
    records = "1 record was" if count == 1 else f"{count} records were"
    return f"cache: {records} refused ({reason})"


def open_shared_store(config: CacheConfig, *, root: Path) -> MaintainedStore:
    """Opens the store without a request to it. Raises ConfigError for an invalid address, and for
    committed settings of the SDK."""
    refuse_committed_settings(root)
    _require_zone("cache", config.zone)
    with _bad_address_is_config_error():
        return stores.open_store(_address(config, root))


def objects_in_zone(config: CacheConfig, *, root: Path) -> int:
    """Returns the number of objects with tuning results in the written zone, without history.
    Raises ConfigError, and StoreUnavailableError if the store does not answer."""
    return len(open_shared_store(config, root=root).names(f"ms1/z/{config.zone}/g/"))


def write_problem(config: CacheConfig, *, root: Path) -> str:
    """Returns why a run could not write to the directory, '' if it can or need not. Other stores
    are not asked. Raises ConfigError."""
    if config.mode != "rw" or _has_scheme(config.url):
        return ""
    zone = f"ms1/z/{config.zone}"
    store = FileStore(cache_directory(config.url, root))
    return store.write_problem(zone, f"{zone}/history", f"{zone}/g/*/", f"{zone}/g/*/seg")


def store_kind(config: CacheConfig, *, root: Path) -> StoreKind:
    """Returns the kind of the configured store. Raises ConfigError for an invalid address."""
    with _bad_address_is_config_error():
        return stores.kind_of(_address(config, root))


@contextmanager
def _bad_address_is_config_error() -> Iterator[None]:
    try:
        yield
    except stores.BadAddressError as error:
        raise ConfigError(f"cache.url: {error}.") from error


def undelivered_store(config: CacheConfig, *, root: Path) -> FileStore:
    """Returns the store of records that earlier runs on this machine could not deliver to this
    cache."""
    place = stores.store_name(_address(config, root))
    return FileStore(state_home() / "undelivered" / place)


def count_undelivered(config: CacheConfig, *, root: Path) -> int:
    """Returns the number of segments that wait for the configured zone."""
    try:
        names = undelivered_store(config, root=root).names(f"ms1/z/{config.zone}/")
        return sum(parse_segment(name) is not None for name in names)
    except StoreUnavailableError:
        return 0


def location_of(config: CacheConfig, *, root: Path) -> str:
    """Returns the address that the cache is opened at; a directory's is absolute."""
    return _address(config, root).url


def _address(config: CacheConfig, root: Path) -> StoreAddress:
    url = config.url
    if url and not url.startswith("$") and not _has_scheme(url):
        url = str(cache_directory(url, root))
    return StoreAddress(
        url=url,
        endpoint_url=config.endpoint_url,
        region=config.region,
        sse=config.sse,
        sse_kms_key=config.sse_kms_key,
    )


def _has_scheme(url: str) -> bool:
    return ":" in url.partition("/")[0]


_: type[TaskIndex] = SharedCache


# The cache's directory, if it is in the checkout: nothing that was committed is trusted.


def cache_directory(url: str, root: Path) -> Path:
    """Returns the directory; a relative one is below `root`. Raises ConfigError if the checkout
    contains it: a link could lead anywhere, and its files would be records that nobody measured."""
    place = cache_home() if url == DEFAULT_CACHE_URL else _expand_home(url)
    directory = Path(os.path.normpath(root / place))
    top = working_tree(root)
    below = None if top is None else _place_below(top, directory)
    if top is None or below is None:
        return directory
    inside = below.relative_to(top)
    for each in (inside, *inside.parents):
        if each != Path() and (top / each).is_symlink():
            message = f"cache.url: {url}: {each} is a symbolic link of the checkout. Remove it."
            raise ConfigError(message)
    if first_tracked(top, below) != "":
        message = (
            f"cache.url: {url}: git tracks files in it, so whoever changes the checkout would "
            "choose what the cache says. Remove them from git, or use a directory outside of it."
        )
        raise ConfigError(message)
    return directory


def _place_below(top: Path, path: Path) -> Path | None:
    """Returns the path as one below `top`, also where a link outside of it leads there; None for
    any other."""
    places = (path, Path(os.path.realpath(path)))
    return next((each for each in places if each.is_relative_to(top)), None)


_SETTINGS = {
    "AWS_CONFIG_FILE": "~/.aws/config",
    "AWS_SHARED_CREDENTIALS_FILE": "~/.aws/credentials",
    "AWS_DATA_PATH": "~/.aws/models",
}
"""Variables of the SDK of S3 that name files, or directories of files, and what it reads without
them. In some jobs the home directory is the checkout."""


def refuse_committed_settings(root: Path) -> None:
    """Raises ConfigError if the SDK's settings are content of the checkout: they name programs that
    give credentials, and servers that get them."""
    top = working_tree(root)
    if top is None:
        return
    for name, usual in _SETTINGS.items():
        for each in filter(None, (*os.environ.get(name, "").split(os.pathsep), usual)):
            place = Path(os.path.normpath(Path(os.path.expanduser(each)).absolute()))  # noqa: PTH111
            file = _place_below(top, place)
            if file is not None and file != top and first_tracked(top, file) != "":
                message = (
                    f"{name}: {each}: git tracks it, so whoever changes the checkout would choose "
                    "the program and the server of the credentials. Use a file outside of it."
                )
                raise ConfigError(message)


# The private key that signs a run's records: from the environment, and never shown.

VARIABLE = "TUNEGATE_SIGNING_KEY"


def signing_key() -> Signer | None:
    """Returns the signer. Raises ConfigError if the variable holds something else."""
    pem = os.environ.get(VARIABLE, "")
    if not pem.strip():
        return None
    try:
        return signer_from_pem(pem)
    except BadKeyError as error:
        raise ConfigError(f"{VARIABLE}: {error}.") from error


def require_signing(config: CacheConfig, zone: str = "") -> None:
    """Raises ConfigError if no reader would trust what this environment writes to the zone, or to
    the configured one."""
    zone = zone or config.zone
    if not TrustedKeys(config.trusted_keys).is_signer(zone, signing_key()):
        message = f"{VARIABLE}: zone {zone} of cache.trusted-keys trusts signed content alone"
        raise ConfigError(f"{message}. Set it to the PEM of one of its keys.")


# The directories of this user's cache and state, by the XDG base directories.


def cache_home(variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of the default cache, and of copies of a remote one."""
    return _home("XDG_CACHE_HOME", variables)


def state_home(variables: Mapping[str, str] = os.environ) -> Path:
    """Returns the directory of what must outlive a cache: undelivered records, seen heads."""
    return _home("XDG_STATE_HOME", variables)


def _home(name: str, variables: Mapping[str, str]) -> Path:
    """Returns the directory in the variable. A relative one would depend on the working directory,
    which may be a checkout: it is ignored."""
    base = Path(variables.get(name, ""))
    return base / "tunegate" if base.is_absolute() else _expand_home(DEFAULT_CACHE_URL)


def _expand_home(path: str) -> Path:
    """Returns the path with its `~` replaced. Raises ConfigError for a home that is not known, as
    in a container whose user has neither HOME nor an entry, or that is relative."""
    with suppress(RuntimeError):
        place = Path(path).expanduser()
        if place.is_absolute() or not path.startswith("~"):
            return place
    raise ConfigError(f"{path}: {stores.HOME_UNKNOWN}.")
