"""A real S3 API over HTTP on loopback, in a process of its own."""

import os
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import boto3

from tests.support.servers import atomic_moto

BUCKET = "tuning"
NAMES_OF_A_PAGE = 50
CREDENTIALS = {
    "AWS_ACCESS_KEY_ID": "testing",
    "AWS_SECRET_ACCESS_KEY": "testing",
    "AWS_EC2_METADATA_DISABLED": "true",
}


@contextmanager
def moto_server() -> Iterator[str]:
    """The server's URL; the bucket `tuning` exists."""
    port = free_port()
    url = f"http://127.0.0.1:{port}"
    command = [sys.executable, atomic_moto.__file__, "-H", "127.0.0.1", "-p", str(port)]
    environment = {**os.environ, "MOTO_S3_DEFAULT_MAX_KEYS": str(NAMES_OF_A_PAGE)}
    with subprocess.Popen(
        command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment
    ) as server:
        try:
            _wait_for(url)
            client = boto3.session.Session(
                aws_access_key_id="testing", aws_secret_access_key="testing"
            ).client("s3", endpoint_url=url, region_name="us-east-1")
            client.create_bucket(Bucket=BUCKET)
            client.close()
            yield url
        finally:
            server.terminate()


def free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _wait_for(url: str) -> None:
    deadline = time.monotonic() + 120
    while time.monotonic() < deadline:
        with suppress(OSError), urllib.request.urlopen(url, timeout=1):
            return
        time.sleep(0.1)
    message = f"no answer from {url}"
    raise TimeoutError(message)
