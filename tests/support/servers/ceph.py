"""A Ceph object gateway on loopback: another S3 server than the one that all tests use, and one
that people run. One monitor, one storage daemon in memory, one gateway; all of it goes at the end.

The programs are those of Debian (requirements/programs.txt)."""

import json
import os
import subprocess
import tempfile
import time
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import boto3
from botocore.exceptions import BotoCoreError, ClientError

from tests.support.servers.moto_server import BUCKET, CREDENTIALS, free_port

PROGRAMS = ("ceph", "ceph-authtool", "ceph-mon", "ceph-osd", "monmaptool", "radosgw")
_START_SECONDS = 90
_CONFIGURATION = """[global]
fsid = {fsid}
mon host = {monitor}
public network = 127.0.0.0/8
auth cluster required = cephx
auth service required = cephx
auth client required = cephx
keyring = {folder}/keyring
run dir = {folder}
admin socket = {folder}/$name.asok
log file = {folder}/$name.log
pid file = {folder}/$name.pid
mon data = {folder}/mon
mon allow pool size one = true
mon data avail crit = 1
mon data avail warn = 2
ms bind ipv6 = false
osd data = {folder}/osd
osd objectstore = memstore
memstore device bytes = 1073741824
osd crush chooseleaf type = 0
osd pool default size = 1
osd pool default min size = 1
osd pool default pg num = 4
osd pool default pgp num = 4
osd pool default pg autoscale mode = off
rgw frontends = beast endpoint=127.0.0.1:{port}
rgw data = {folder}/rgw
rgw enable usage log = false
"""


class CephNotStartedError(Exception):
    """Something of it is installed and does not come up; the text says what it said last."""


@contextmanager
def ceph_gateway() -> Iterator[str]:
    """The gateway's URL; the bucket of the tests exists and their credentials are good."""
    # Paths of sockets may not be long: not pytest's own directory.
    with tempfile.TemporaryDirectory(prefix="ceph-") as folder, ExitStack() as stack:
        node = _Node(Path(folder), stack)
        node.start_monitor()
        node.start_storage()
        yield node.start_gateway()


class _Node:
    def __init__(self, folder: Path, stack: ExitStack) -> None:
        self._folder, self._stack = folder, stack
        self._fsid, self._port = str(uuid.uuid4()), free_port()
        self._monitor = f"[v2:127.0.0.1:{free_port()},v1:127.0.0.1:{free_port()}]"
        text = _CONFIGURATION.format(
            fsid=self._fsid, monitor=self._monitor, folder=folder, port=self._port
        )
        self._file("ceph.conf").write_text(text)
        for name in ("mon", "osd", "rgw"):
            self._file(name).mkdir()

    def start_monitor(self) -> None:
        keyring, map_file = self._file("keyring"), self._file("monmap")
        every = ["--cap", "mon", "allow *", "--cap", "osd", "allow *", "--cap", "mgr", "allow *"]
        _run("ceph-authtool", "--create-keyring", keyring, "--gen-key", "-n", "mon.", *every[:3])
        _run("ceph-authtool", keyring, "--gen-key", "-n", "client.admin", *every)
        _run("monmaptool", "--create", "--fsid", self._fsid, "--addv", "a", self._monitor, map_file)
        daemon = ["ceph-mon", "-i", "a"]
        _run(*self._of_us(daemon), "--mkfs", "--monmap", map_file, "--keyring", keyring)
        self._start(daemon)

    def start_storage(self) -> None:
        """Starts the storage with the id that the monitor gave it:
        without it, it would boot for ever."""
        identity, secret = str(uuid.uuid4()), _run("ceph-authtool", "--gen-print-key").strip()
        permissions = ["--cap", "osd", "allow *", "--cap", "mon", "allow profile osd"]
        keyring = self._file("keyring")
        _run("ceph-authtool", keyring, "-n", "osd.0", "--add-key", secret, *permissions)
        wanted = json.dumps({"cephx_secret": secret})
        _run(*self._of_us(["ceph"]), "osd", "new", identity, "-i", "-", text=wanted)
        daemon = ["ceph-osd", "-i", "0"]
        _run(*self._of_us(daemon), "--mkfs", "--osd-uuid", identity)
        self._start(daemon)
        self._wait_for("the storage daemon", self._storage_is_up)

    def start_gateway(self) -> str:
        """Starts the gateway as the administrator: that needs no user of its own, and no
        manager."""
        self._start(["radosgw", "-n", "client.admin"])
        user = ["--uid", "test", "--display-name", "test"]
        keys = ["--access-key", CREDENTIALS["AWS_ACCESS_KEY_ID"]]
        keys += ["--secret-key", CREDENTIALS["AWS_SECRET_ACCESS_KEY"]]
        _run(*self._of_us(["radosgw-admin"]), "user", "create", *user, *keys)
        url = f"http://127.0.0.1:{self._port}"
        self._wait_for("the gateway", lambda: _makes_bucket(url))
        return url

    def _of_us(self, command: Sequence[str]) -> list[str]:
        return [*command, "-c", str(self._file("ceph.conf"))]

    def _start(self, command: Sequence[str]) -> None:
        output = self._stack.enter_context(self._file(f"{command[0]}.out").open("wb"))
        daemon = subprocess.Popen(
            [*self._of_us(command), "-f"], stdout=output, stderr=output, env=_environment()
        )
        self._stack.callback(_end, daemon)

    def _storage_is_up(self) -> bool:
        state = json.loads(_run(*self._of_us(["ceph"]), "osd", "stat", "--format", "json"))
        return bool(state["num_up_osds"])

    def _wait_for(self, what: str, is_there: Callable[[], bool]) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline:
            if is_there():
                return
            time.sleep(0.3)
        last = [path.read_text(errors="replace")[-500:] for path in self._folder.glob("*.log")]
        raise CephNotStartedError(f"{what} is not up after {_START_SECONDS} s: {last}")

    def _file(self, name: str) -> Path:
        return self._folder / name


def _environment() -> Mapping[str, str]:
    """Some of it is Python, and not of this environment."""
    return {"PATH": os.environ["PATH"], "LANG": "C.UTF-8"}


def _run(*command: str | Path, text: str | None = None) -> str:
    try:
        done = subprocess.run(
            command,
            input=text,
            capture_output=True,
            text=True,
            check=True,
            timeout=_START_SECONDS,
            env=_environment(),
        )
    except subprocess.SubprocessError as error:
        said = getattr(error, "stderr", "")
        raise CephNotStartedError(f"{command[0]}: {error}: {said}") from error
    return done.stdout


def _end(daemon: subprocess.Popen[bytes]) -> None:
    daemon.terminate()
    try:
        daemon.wait(5)
    except subprocess.TimeoutExpired:
        daemon.kill()
        daemon.wait()


def _makes_bucket(url: str) -> bool:
    session = boto3.session.Session(
        aws_access_key_id=CREDENTIALS["AWS_ACCESS_KEY_ID"],
        aws_secret_access_key=CREDENTIALS["AWS_SECRET_ACCESS_KEY"],
    )
    client = session.client("s3", endpoint_url=url, region_name="us-east-1")
    with suppress(BotoCoreError, ClientError):
        client.create_bucket(Bucket=BUCKET)
        return True
    return False
