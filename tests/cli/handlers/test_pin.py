from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell
from tests.support.tuning_records import make_key, make_shape
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache


def test_a_pin_is_written_obeyed_and_removed(shell: Shell) -> None:
    assert "Run tunegate cache compact" in shell.shown("pin", code=2)
    shell.publish("a")
    shell.cache("compact")
    (pin,) = shell.cache("pin")["pins"]
    assert (pin["zone"], pin["version"]) == ("main", 1)
    shell.publish("b")
    config = CacheConfig(url=shell.url)
    cache = SharedCache(config, state=shell.root / "state", root=shell.root)
    found = cache.lookup([(make_key(name), make_shape()) for name in ("a", "b")])
    assert found[make_key("a")].__class__.__name__ == "ExactHit"
    assert found[make_key("b")].__class__.__name__ != "ExactHit"
    shell.cache("pin", "--remove")
    assert not (shell.root / "tunegate.lock").exists()
