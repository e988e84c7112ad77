"""ports.Repository over git, by GitPython: reads any revision, never touches the working tree."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tunegate.artifacts.changes import ModelVersion, Revisions
from tunegate.edges.git_process import GitProcess
from tunegate.edges.model_content import read_content
from tunegate.edges.onnx_graph import external_files
from tunegate.errors import ModelError, RevisionError
from tunegate.ports import Repository, TreeEntry

NOTHING_BEFORE = "0" * 40


class GitRepository:
    """One repository. The ways to find base and head are named after the event they fit."""

    def __init__(self, path: Path) -> None:
        """Raises RevisionError where there is no repository."""
        self._git = GitProcess(path)
        self.root = self._git.root

    # which revisions -----------------------------------------------------------

    def revisions(self, base: str | None, head: str | None) -> Revisions:
        """What was asked for, literally; without a base, the merge base with the default branch."""
        head_commit = self._commit(head or "HEAD", "--head")
        if base is not None:
            return Revisions(
                base=self._commit(base, "--base"), head=head_commit, reason="given by --base"
            )
        return self._against_default_branch(head_commit)

    def merge_commit_revisions(self, base_tip: str = "", head_tip: str = "") -> Revisions:
        """Of a pull request's merge commit: against its first parent, which a shallow checkout
        does not have but the commit itself names.

        Where the pull request's own head is checked out instead, against its merge base with the
        base branch's tip.
        """
        head = self._commit("HEAD", "--head")
        if head == head_tip:
            return self._from_merge_base(base_tip, head)
        raw = self._git.text("cat-file", "commit", head) or ""
        header = raw.partition("\n\n")[0].splitlines()
        parents = [line.split()[1] for line in header if line.startswith("parent ")]
        if not parents:
            return Revisions(base=None, head=head, reason="the commit has no parent")
        if not self._is_here(parents[0]) and not self._fetch(parents[0]):
            why = f"the parent {parents[0][:12]} could not be fetched, so every model is checked"
            return Revisions(base=None, head=head, reason=why)
        return Revisions(base=parents[0], head=head, reason="first parent of the merge commit")

    def _from_merge_base(self, tip: str, head: str) -> Revisions:
        if not self._is_here(tip):
            self._fetch(tip)
        base = self._merge_base(tip, head) if self._is_here(tip) else None
        if base is None:
            why = f"no merge base with {tip[:12]} could be found, so every model is checked"
            return Revisions(base=None, head=head, reason=why)
        return Revisions(base=base, head=head, reason="merge base of the pull request")

    def push_revisions(self, before: str, after: str) -> Revisions:
        """Of a push. A new branch has nothing before it; a forced push may have lost it."""
        head = self._commit(after, "--head")
        if before == NOTHING_BEFORE:
            return self._against_default_branch(head, "new branch: ")
        if self._is_here(before) or self._fetch(before):
            return Revisions(base=before, head=head, reason="the commit before the push")
        return self._against_default_branch(head, f"{before[:12]} is gone (forced push): ")

    def range_revisions(self, base: str, head: str) -> Revisions:
        """Of two commits that the event names (merge queue): both fetched where they are missing."""
        for commit in (base, head):
            if not self._is_here(commit):
                self._fetch(commit)
        return Revisions(
            base=self._commit(base, "--base"),
            head=self._commit(head, "--head"),
            reason="named by the event",
        )

    # what is in them -----------------------------------------------------------

    def files(self, revision: str) -> Sequence[TreeEntry]:
        listed = self._git.bytes("ls-tree", "-r", "-z", "-l", "--full-tree", revision)
        if listed is None:
            message = f"{revision}: its files cannot be listed. Fetch the whole commit."
            raise RevisionError(message)
        entries = [_entry(line) for line in listed.split(b"\0") if line]
        return tuple(entry for entry in entries if entry is not None)

    def read(self, revision: str, path: str) -> bytes:
        content = self._git.bytes("cat-file", "blob", f"{revision}:{path}")
        if content is None:
            message = f"{path}: not in {revision[:12]}, or its content cannot be fetched."
            raise RevisionError(message)
        return content

    def content(self, version: ModelVersion) -> bytes:
        """The model's real bytes, through LFS or DVC. Raises ModelError where they are not here."""
        return read_content(self._git, self.read, version)

    def export_model(self, version: ModelVersion, into: Path) -> Path:
        """The model and its external data as files, laid out as in the repository."""
        model = into / PurePosixPath(version.path).name
        body = self.content(version)
        into.mkdir(parents=True, exist_ok=True)
        model.write_bytes(body)
        try:
            names = external_files(body)
        except ModelError as error:
            message = f"{version.path}: {error}. Export it again."
            raise ModelError(message) from error
        for name in names:
            beside = str(PurePosixPath(version.path).parent / name)
            target = into / name
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_bytes(self.content(_beside(version, beside)))
        return model

    # ---------------------------------------------------------------------------

    def _against_default_branch(self, head: str, why: str = "") -> Revisions:
        branch = self._default_branch()
        if branch is None:
            return self._against_parent(head, f"{why}there is no default branch to compare with")
        tip = self._git.text("rev-parse", "--verify", "-q", f"{branch}^{{commit}}")
        if tip == head:
            return self._against_parent(head, f"{why}{branch} is the head itself")
        base = self._merge_base(branch, head)
        if base is None:
            reason = f"{why}no merge base with {branch}, so every model is checked"
            return Revisions(base=None, head=head, reason=reason)
        if base == head:
            return self._against_parent(head, f"{why}the head is already on {branch}")
        return Revisions(base=base, head=head, reason=f"{why}merge base with {branch}")

    def _against_parent(self, head: str, why: str) -> Revisions:
        parent = self._git.text("rev-parse", "--verify", "-q", f"{head}^1^{{commit}}")
        if parent is None and self._is_shallow():
            self._git.text("fetch", "-q", "--no-tags", "--deepen=1", "origin")
            parent = self._git.text("rev-parse", "--verify", "-q", f"{head}^1^{{commit}}")
        if parent is None:
            return Revisions(base=None, head=head, reason=f"{why}, and it has no parent here")
        return Revisions(base=parent, head=head, reason=f"{why}: its parent")

    def _merge_base(self, branch: str, head: str) -> str | None:
        """An empty answer in a shallow clone means 'cannot walk', not 'no ancestor': deepen."""
        base = self._git.text("merge-base", branch, head)
        for depth in (50, 500) if base is None and self._is_shallow() else ():
            self._git.text(
                "fetch", "-q", "--no-tags", "--filter=blob:none", f"--deepen={depth}", "origin"
            )
            base = self._git.text("merge-base", branch, head)
            if base is not None:
                return base
        return base

    def _default_branch(self) -> str | None:
        named = self._git.text("symbolic-ref", "-q", "refs/remotes/origin/HEAD")
        candidates = [named] if named else []
        candidates += [
            f"refs/{kind}/{name}"
            for name in ("main", "master")
            for kind in ("remotes/origin", "heads")
        ]
        for ref in candidates:
            if self._git.text("rev-parse", "--verify", "-q", f"{ref}^{{commit}}"):
                return ref.removeprefix("refs/remotes/").removeprefix("refs/heads/")
        return None

    def _commit(self, revision: str, option: str) -> str:
        found = self._git.text(
            "rev-parse", "--verify", "-q", "--end-of-options", f"{revision}^{{commit}}"
        )
        if found is None:
            message = (
                f'{option}: "{revision}" is no revision of {self.root}. Name a commit, branch or '
                f"tag that is here, or fetch it."
            )
            raise RevisionError(message)
        return found

    def _is_here(self, commit: str) -> bool:
        return self._git.bytes("cat-file", "-e", f"{commit}^{{commit}}") is not None

    def _is_shallow(self) -> bool:
        return self._git.text("rev-parse", "--is-shallow-repository") == "true"

    def _fetch(self, commit: str) -> bool:
        """Without blobs: those of changed models are fetched when they are read."""
        self._git.text(
            "fetch", "-q", "--no-tags", "--depth=1", "--filter=blob:none", "origin", commit
        )
        return self._is_here(commit)


def _entry(line: bytes) -> TreeEntry | None:
    meta, _, path = line.partition(b"\t")
    _, kind, blob, size = meta.split()
    if kind != b"blob":
        return None
    bytes_ = int(size) if size.isdigit() else 0
    return TreeEntry(path.decode("utf-8", "surrogateescape"), blob.decode(), bytes_)


def _beside(version: ModelVersion, path: str) -> ModelVersion:
    """An external data file of a model, wherever it is stored."""
    return ModelVersion(
        revision=version.revision,
        path=path,
        content_digest="",
        graph_digest=None,
        storage="git",
        size_bytes=0,
    )


_: type[Repository] = GitRepository
