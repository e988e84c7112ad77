from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tunegate.system.git.compared_revisions import name_of_remote


@pytest.mark.parametrize(
    ("address", "name"),
    [
        ("https://github.com/acme/vision.git", "acme/vision"),
        ("https://x-access-token:ghs_secret@github.com/acme/vision", "acme/vision"),
        ("git@github.com:acme/vision.git", "acme/vision"),
        ("ssh://git@gitlab.example:2222/group/sub/project.git/", "group/sub/project"),
        ("/srv/git/vision.git", ""),
        ("../vision", ""),
        ("file:///srv/git/vision.git", ""),
        ("https://example.com/", ""),
        ("https://example.com/a b<script>", ""),
        ("", ""),
    ],
)
def test_a_repository_has_the_name_of_its_path_on_the_server(address: str, name: str) -> None:
    assert name_of_remote(address) == name


@given(st.text(alphabet="abs3", min_size=12))
def test_no_secret_of_an_address_becomes_a_name(secret: str) -> None:
    assert secret not in name_of_remote(f"https://{secret}@example.com/o/n.git")
