"""Opens the store of a cache address. Kinds of stores are found by entry point; none is known
here."""

import hashlib
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import NoReturn, TypeVar
from urllib.parse import urlsplit

import msgspec

from tunegate_cache.installed_plugins import Plugin, PluginError, find_plugins, load_plugin
from tunegate_cache.stores.store import (
    MAX_OBJECT_BYTES,
    MaintainedStore,
    ObjectNotFoundError,
    Pointer,
    PointerMovedError,
    StoreUnavailableError,
)
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind

STORE_GROUP = "tunegate.stores"
HOME_UNKNOWN = "the home directory is not known. Set HOME, or write a whole path"


class BadAddressError(ValueError):
    """No installed store has such an address. The text is one line."""


def open_store(address: StoreAddress) -> MaintainedStore:
    """Opens the store without a request to it. A failing plugin becomes a store that never answers.
    Raises BadAddressError."""
    kind, uri = kind_of(address), _add_scheme(address)
    try:
        store = kind.open(uri)
    except Exception as error:  # noqa: BLE001 - whatever a plugin raises
        store = unusable_kind(f"the store could not be opened: {type(error).__name__}").open(uri)
    return ContainedStore(store, uri.parts.scheme)


def kind_of(address: StoreAddress) -> StoreKind:
    """Returns the kind of store at this address. Raises BadAddressError."""
    uri = _add_scheme(address)
    scheme, kinds = uri.parts.scheme, find_plugins(STORE_GROUP)
    if scheme not in kinds:
        problem = f'no store is installed for "{scheme}:"' if scheme else "it is empty"
        message = (
            f'"{address.url}" is not a cache address: {problem}. Write a directory or one of '
            f"{', '.join(f'{name}:' for name in kinds)}; "
            "docs/how-to/extend.md says how to add a store"
        )
        raise BadAddressError(message)
    if address.endpoint_url and not _is_http(address.endpoint_url):
        # What lacks its scheme looks like no login to whoever masks secrets.
        shown = address.endpoint_url.rpartition("@")[2].partition("?")[0]
        message = (
            f'"{address.url}" has an endpoint-url that is no address, "{shown}"; write https://host'
        )
        raise BadAddressError(message)
    kind = _load_kind(kinds[scheme])
    if not _is_complete(uri, kind):
        raise BadAddressError(f'"{address.url}" is not a cache address; write {kind.form}')
    return kind


def store_name(address: StoreAddress) -> str:
    """Returns a folder name for what a machine keeps of this store; no two stores share one."""
    addresses = f"{address.endpoint_url or ''} {address.url}"
    return hashlib.sha256(addresses.encode(errors="surrogateescape")).hexdigest()


def _add_scheme(address: StoreAddress) -> StoreAddress:
    """Returns the address; a plain directory becomes a URI."""
    try:
        if address.parts.scheme or not address.url:
            return address
        if "://" in address.url:
            raise ValueError("what stands before :// is not a scheme")
        if address.url.startswith("$"):
            raise ValueError("variables are not replaced. Write a whole path, or one from ~ on")
        directory = Path(address.url).expanduser().absolute()
    except RuntimeError as error:  # such as "~nobody"
        raise BadAddressError(f'"{address.url}" is not a cache address: {HOME_UNKNOWN}') from error
    except ValueError as error:  # such as "s3://["
        raise BadAddressError(f'"{address.url}" is not a cache address: {error}') from error
    return msgspec.structs.replace(address, url=directory.as_uri())


def _is_http(url: str) -> bool:
    try:
        parts = urlsplit(url)
        _ = parts.port  # raises ValueError for one that is none
    except ValueError:
        return False
    return parts.scheme in {"http", "https"} and bool(parts.hostname) and not parts.query


def _load_kind(plugin: Plugin) -> StoreKind:
    """Returns the kind, or one whose stores say why it is unusable."""
    try:
        kind = load_plugin(plugin)
    except PluginError as error:
        return unusable_kind(str(error))
    if isinstance(kind, StoreKind):
        return kind
    return unusable_kind(f'{plugin.offered_by[0]}: "{plugin.value}" is no StoreKind')


def _is_complete(address: StoreAddress, kind: StoreKind) -> bool:
    try:
        return kind.accepts(address)
    except Exception:  # noqa: BLE001 - a plugin's fault shows when it is opened
        return True


# Holds a store to its contract: whatever else it raises or returns is trouble of the store.

Answer = TypeVar("Answer")


class ContainedStore:
    """Raises only what `ObjectStore` and `MaintainedStore` allow, so that no fault of a store ends
    a run. Messages contain another error's class, not its text, which may hold a secret."""

    def __init__(self, store: MaintainedStore, scheme: str) -> None:
        self._store, self._scheme = store, scheme

    @property
    def remarks(self) -> tuple[str, ...]:
        """Returns what the store has learned about its server, if it reports that."""
        remarks = getattr(self._store, "remarks", ())
        return tuple(map(str, remarks)) if isinstance(remarks, tuple) else ()

    def read(self, name: str) -> bytes:
        return self._body(self._ask(lambda: self._store.read(name)))

    def write(self, name: str, body: bytes) -> None:
        self._ask(lambda: self._store.write(name, body))

    def names(self, prefix: str) -> Sequence[str]:
        return self._ask(lambda: self._listing(self._store.names(prefix), prefix))

    def read_part(self, name: str, start: int, size: int) -> bytes:
        return self._body(self._ask(lambda: self._store.read_part(name, start, size)))

    def read_pointer(self, name: str) -> Pointer:
        pointer = self._ask(lambda: self._store.read_pointer(name))
        if not isinstance(pointer, Pointer):
            raise self._fault("a pointer that is none")
        self._body(pointer.body)
        return pointer

    def move_pointer(self, name: str, body: bytes, expected: str | None) -> None:
        self._ask(lambda: self._store.move_pointer(name, body, expected))

    def delete(self, name: str) -> None:
        self._ask(lambda: self._store.delete(name))

    def _ask(self, request: Callable[[], Answer]) -> Answer:
        try:
            return request()
        except (ObjectNotFoundError, PointerMovedError, StoreUnavailableError):
            raise
        except Exception as error:
            raise self._fault(type(error).__name__) from error

    def _body(self, body: object) -> bytes:
        if not isinstance(body, bytes):
            raise self._fault("a body that is not bytes")
        if len(body) > MAX_OBJECT_BYTES:
            raise self._fault(f"an object larger than {MAX_OBJECT_BYTES} bytes")
        return body

    def _listing(self, names: Sequence[str], prefix: str) -> Sequence[str]:
        """Returns only names below the prefix: another zone's records must not be read as this
        one's."""
        if not all(name.startswith(prefix) for name in names):
            raise self._fault("the listing of another place")
        return names

    def _fault(self, problem: str) -> StoreUnavailableError:
        return StoreUnavailableError(f"{self._scheme}: {problem}")


_: type[MaintainedStore] = ContainedStore


# A store that never answers but gives the reason: it stands for an unusable plugin.


def unusable_kind(reason: str) -> StoreKind:
    """Returns a kind that accepts every address. Each request of its stores fails with `reason`."""
    return StoreKind(
        form="another address",
        accepts=lambda _: True,
        open=lambda _: UnusableStore(reason),
        is_remote=False,
        advice=("repair or uninstall the package that the check names",),
    )


class UnusableStore:
    """Fails each request with the same reason."""

    def __init__(self, reason: str) -> None:
        self._reason = reason

    def _fail(self, *_: object, **__: object) -> NoReturn:
        raise StoreUnavailableError(self._reason)

    read = write = names = read_part = read_pointer = move_pointer = delete = _fail


_unusable: type[MaintainedStore] = UnusableStore
