"""Opens the store of a cache address. Kinds of stores are found by entry point; none is known
here."""

from __future__ import annotations

import hashlib
from pathlib import Path

import msgspec

from tunegate_cache.installed_plugins import Plugin, PluginError, installed, load_plugin
from tunegate_cache.stores.contained import ContainedStore
from tunegate_cache.stores.store import MaintainedStore
from tunegate_cache.stores.store_kind import StoreAddress, StoreKind
from tunegate_cache.stores.unusable import unusable_kind

STORE_GROUP = "tunegate.stores"


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
    scheme, kinds = uri.parts.scheme, installed(STORE_GROUP)
    if scheme not in kinds:
        problem = f'no store is installed for "{scheme}:"' if scheme else "it is empty"
        message = (
            f'"{address.url}" is no cache address: {problem}. Write a directory or one of '
            f"{', '.join(f'{name}:' for name in kinds)}; "
            "docs/how-to/extend.md says how to add a store"
        )
        raise BadAddressError(message)
    kind = _load_kind(kinds[scheme])
    if not _is_complete(uri, kind):
        raise BadAddressError(f'"{address.url}" is no cache address; write {kind.form}')
    return kind


def store_name(address: StoreAddress) -> str:
    """Returns a folder name for what a machine keeps of this store; no two stores share one."""
    named = f"{address.endpoint_url or ''} {address.url}"
    return hashlib.sha256(named.encode(errors="surrogateescape")).hexdigest()


def _add_scheme(address: StoreAddress) -> StoreAddress:
    """Returns the address; a plain directory becomes a URI."""
    try:
        if address.parts.scheme or not address.url:
            return address
        if "://" in address.url:
            raise ValueError("what stands before :// is no scheme")
        directory = Path(address.url).expanduser().absolute()
    except (ValueError, RuntimeError) as error:  # such as "s3://[" and "~nobody"
        raise BadAddressError(f'"{address.url}" is no cache address: {error}') from error
    return msgspec.structs.replace(address, url=directory.as_uri())


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
