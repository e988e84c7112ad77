from __future__ import annotations

from tests.cli.handlers.cache_shell import Shell
from tests.support.servers.moto_server import BUCKET


def test_an_empty_cache_is_led_to_its_first_run(shell: Shell) -> None:
    diagnosis = shell.cache("doctor")
    assert all(check["ok"] for check in diagnosis["checks"])
    assert diagnosis["next_steps"][0].startswith("the cache is empty: put cache: {url:")
    assert "tunegate run" in diagnosis["next_steps"][1]
    assert "1. the cache is empty" in shell.shown("doctor")


def test_an_empty_bucket_is_led_to_its_first_run(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    shell.url = f"s3://{BUCKET}/fresh"
    shell.configure(f"  endpoint-url: {endpoint}\n  region: us-east-1\n")
    diagnosis = shell.cache("doctor")
    assert all(check["ok"] for check in diagnosis["checks"]), diagnosis
    assert "the cache is empty" in diagnosis["next_steps"][0]
    assert shell.cache("probe")["findings"][0]["ok"]


def test_a_bucket_that_is_not_there_is_said_with_what_to_check(
    shell: Shell, endpoint: str, credentials: None
) -> None:
    shell.url = "s3://no-such-bucket-here/x"
    shell.configure(f"  endpoint-url: {endpoint}\n  region: us-east-1\n")
    diagnosis = shell.cache("doctor", code=4)
    assert "NoSuchBucket" in diagnosis["checks"][0]["detail"]
    assert "check the bucket's name" in diagnosis["next_steps"][0]
    assert "Run tunegate cache doctor" in shell.shown("stats", code=4)
