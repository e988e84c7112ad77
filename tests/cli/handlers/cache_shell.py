"""`tunegate cache ...` over a directory or a bucket, as a person types it."""

import json
from pathlib import Path
from typing import Any

import pytest

from tests.support.tuning_records import make_record
from tunegate.cli.main import main
from tunegate.config import CacheConfig
from tunegate.system.cache.shared_cache import SharedCache


class Shell:
    """A directory with a configuration, and the cache it names."""

    def __init__(self, root: Path, capsys: pytest.CaptureFixture[str], url: str) -> None:
        self.root, self._capsys, self.url = root, capsys, url
        root.mkdir(exist_ok=True)
        self.configure("")

    def configure(self, more: str) -> None:
        text = f'models:\n  - path: "*.onnx"\ncache:\n  url: "{self.url}"\n{more}'
        (self.root / "tunegate.yaml").write_text(text)

    def cache(self, *line: str, code: int = 0) -> dict[str, Any]:
        """Runs the command with --json, and returns what it prints."""
        where = ["--repository", str(self.root), "--out", str(self.root / "out")]
        assert main(["cache", *line, *where, "--json"]) == code, self._capsys.readouterr().err
        printed = self._capsys.readouterr().out
        shown: dict[str, Any] = json.loads(printed or "{}")
        return shown

    def shown(self, *line: str, code: int = 0) -> str:
        return self.typed("cache", *line, code=code)

    def typed(self, *line: str, code: int = 0) -> str:
        assert main([*line, "--repository", str(self.root)]) == code
        printed = self._capsys.readouterr()
        return printed.out + printed.err

    def publish(self, *workloads: str, zone: str = "main") -> None:
        config = CacheConfig(url=self.url, zone=zone)
        cache = SharedCache(config, state=self.root / "state", root=self.root)
        for workload in workloads:
            assert cache.publish([make_record(workload)])
