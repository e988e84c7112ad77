"""The rules of an object store. Subclass it, supply `store`, and every rule is checked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tunegate_cache.store import ObjectConflictError, ObjectNotFoundError, ObjectStore


class StoreContract:
    def test_reads_back_what_was_written(self, store: ObjectStore) -> None:
        store.write("a/b/1", b"\x00x")
        assert store.read("a/b/1") == b"\x00x"

    def test_an_empty_body_is_a_body(self, store: ObjectStore) -> None:
        store.write("a/empty", b"")
        assert store.read("a/empty") == b""

    def test_writing_the_same_body_again_is_success(self, store: ObjectStore) -> None:
        store.write("a/again", b"x")
        store.write("a/again", b"x")
        assert store.read("a/again") == b"x"

    def test_the_first_body_under_a_name_stays(self, store: ObjectStore) -> None:
        store.write("a/first", b"x")
        with pytest.raises(ObjectConflictError, match="holds another body"):
            store.write("a/first", b"y")
        assert store.read("a/first") == b"x"

    def test_a_missing_name_is_not_found(self, store: ObjectStore) -> None:
        with pytest.raises(ObjectNotFoundError):
            store.read("a/nope")

    def test_names_are_those_under_the_prefix_in_order(self, store: ObjectStore) -> None:
        for name in ("n/2", "n/1", "n/deep/3", "n2/1", "other/1"):
            store.write(name, b"x")
        assert list(store.names("n/")) == ["n/1", "n/2", "n/deep/3"]
        assert list(store.names("n/d")) == ["n/deep/3"]
        assert list(store.names("absent/")) == []

    def test_many_writers_of_one_name_all_succeed(self, store: ObjectStore) -> None:
        with ThreadPoolExecutor(8) as pool:
            list(pool.map(lambda _: store.write("race/1", b"same"), range(16)))
        assert store.read("race/1") == b"same"

    def test_of_racing_writers_with_different_bodies_one_wins(self, store: ObjectStore) -> None:
        def wins(number: int) -> bool:
            try:
                store.write("race/2", b"%d" % number)
            except ObjectConflictError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(wins, range(8))) == 1
