"""Downloads by Git LFS of missing files, from the server that the job's own settings name.

`.lfsconfig` is a file of the checkout, so a pull request could send the
job's credentials anywhere with it.
"""

from __future__ import annotations

import os
import shutil

from tunegate.edges.git.process import GitProcess, Writer

_SERVER = "lfs.url"
_OF_THE_CHECKOUT = ".lfsconfig"


def lfs_download(git: GitProcess, pointer: bytes, path: str, into: Writer) -> bool:
    """Writes the answer of git-lfs into a file, and returns whether it could; False where it may
    not be asked."""
    if shutil.which("git-lfs") is None:
        return False
    server = git.text("config", "--get", _SERVER)
    if server is None and names_a_server(git):
        return False
    settings = {} if server is None else {_SERVER: server}
    smudge = ("lfs", "smudge", "--", path)
    return git.copy(*smudge, into=into, standard_input=pointer, settings=settings)


def names_a_server(git: GitProcess) -> bool:
    """Returns whether the checkout has a file that git-lfs would read: it looks in the working
    tree, the index and the head."""
    if os.path.lexists(git.root / _OF_THE_CHECKOUT):
        return True
    stored = (f":{_OF_THE_CHECKOUT}", f"HEAD:{_OF_THE_CHECKOUT}")
    return any(git.text("rev-parse", "--verify", "-q", each) for each in stored)
