"""The rules of an object store. Subclass a contract, supply `store`, and every rule is checked."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from tunegate_cache.stores.store import (
    MaintainedStore,
    ObjectConflictError,
    ObjectNotFoundError,
    ObjectStore,
    PointerMovedError,
)


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

    def test_a_part_is_cut_out_and_ends_where_the_object_ends(self, store: ObjectStore) -> None:
        store.write("part/1", b"0123456789")
        assert store.read_part("part/1", 2, 3) == b"234"
        assert store.read_part("part/1", 8, 100) == b"89"
        with pytest.raises(ObjectNotFoundError):
            store.read_part("part/none", 0, 1)


class MaintainedStoreContract(StoreContract):
    def test_a_pointer_moves_only_from_the_version_that_was_read(
        self, store: MaintainedStore
    ) -> None:
        with pytest.raises(ObjectNotFoundError):
            store.read_pointer("p/HEAD")
        store.move_pointer("p/HEAD", b"1", None)
        first = store.read_pointer("p/HEAD")
        assert first.body == b"1"
        store.move_pointer("p/HEAD", b"2", first.tag)
        for stale in (first.tag, None):
            with pytest.raises(PointerMovedError):
                store.move_pointer("p/HEAD", b"3", stale)
        assert store.read_pointer("p/HEAD").body == b"2"

    def test_moving_a_pointer_to_what_it_says_already_is_success(
        self, store: MaintainedStore
    ) -> None:
        """The client sent the request again, because its answer was lost."""
        store.move_pointer("q/HEAD", b"1", None)
        tag = store.read_pointer("q/HEAD").tag
        store.move_pointer("q/HEAD", b"1", tag)
        assert store.read_pointer("q/HEAD").body == b"1"

    def test_of_racing_moves_from_one_version_one_wins(self, store: MaintainedStore) -> None:
        store.move_pointer("r/HEAD", b"start", None)
        tag = store.read_pointer("r/HEAD").tag

        def wins(number: int) -> bool:
            try:
                store.move_pointer("r/HEAD", b"%d" % number, tag)
            except PointerMovedError:
                return False
            return True

        with ThreadPoolExecutor(8) as pool:
            assert sum(pool.map(wins, range(8))) == 1

    def test_what_is_deleted_is_gone_and_may_be_deleted_again(self, store: MaintainedStore) -> None:
        store.write("d/1", b"x")
        store.delete("d/1")
        store.delete("d/1")
        assert list(store.names("d/")) == []
        with pytest.raises(ObjectNotFoundError):
            store.read("d/1")
