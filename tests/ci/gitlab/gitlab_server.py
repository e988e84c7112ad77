"""A server that answers as GitLab's API does, on loopback."""

from contextlib import AbstractContextManager
from typing import Any

from tests.ci.json_server import Answer, JsonServer, serving

TOKEN = "glpat-adversary-0123456789"
ME, ANOTHER = {"id": 41, "username": "project_3_bot"}, {"id": 7, "username": "mallory"}
NOTES = "/api/v4/projects/3/merge_requests/7/notes"


def merge_request(**more: str) -> dict[str, str]:
    """The variables of a pipeline of merge request 7 of the project itself."""
    return {
        "CI_PIPELINE_SOURCE": "merge_request_event",
        "CI_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_IID": "7",
        "CI_MERGE_REQUEST_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_SOURCE_PROJECT_ID": "3",
        "CI_MERGE_REQUEST_TARGET_BRANCH_NAME": "main",
        **more,
    }


class GitLabServer(JsonServer):
    """One merge request, whose notes may be written with one token."""

    def __init__(self) -> None:
        super().__init__()
        self.notes: list[dict[str, Any]] = []

    @property
    def url(self) -> str:
        return f"{super().url}/api/v4"

    def planted(self, body: str, author: dict[str, Any]) -> None:
        self.notes.append({"id": len(self.notes) + 100, "body": body, "author": author})

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        method, _, path = asked.partition(" ")
        if token != TOKEN:
            return 401, {"message": "401 Unauthorized"}
        if path == "/api/v4/user":
            return 200, ME
        if not path.startswith(NOTES):
            return 404, {"message": "404 Not found"}
        if method == "GET":
            page, size = int(query["page"]), int(query["per_page"])
            return 200, self.notes[(page - 1) * size : page * size]
        if method == "POST":
            self.planted(body["body"], ME)
            return 201, self.notes[-1]
        note = next(each for each in self.notes if path == f"{NOTES}/{each['id']}")
        note["body"] = body["body"]
        return 200, note


def gitlab_server() -> AbstractContextManager[GitLabServer]:
    return serving(GitLabServer())
