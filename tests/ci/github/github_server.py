"""A server that answers as GitHub's API does, on loopback."""

from contextlib import AbstractContextManager
from typing import Any

from tests.ci.json_server import Answer, JsonServer, serving

JOBS_OWN = "github-actions[bot]"


def pull_request(
    target: str, tip: str, repository: str | None = "acme/models", **more: object
) -> dict[str, Any]:
    """GitHub's answer about the open pull request 7."""
    head = {"sha": tip, "repo": None if repository is None else {"full_name": repository}}
    about = {"number": 7, "state": "open", "base": {"sha": target}, "head": head}
    return {"number": 7, "pull_request": {**about, **more}}


class GitHubServer(JsonServer):
    """One repository with the comments of its pull request 7, 100 a page. `login` is whose token
    it is asked with; an app's may not ask for its user."""

    def __init__(self) -> None:
        super().__init__()
        self.login = JOBS_OWN
        self.user_id: int | None = None
        self.comments: list[dict[str, Any]] = []
        self._last = 99
        self.checks: list[dict[str, Any]] = []
        self.pulls: list[dict[str, Any]] = []

    @property
    def variables(self) -> dict[str, str]:
        """The environment variables by which a job finds this server."""
        return {
            "GITHUB_API_URL": self.url,
            "GITHUB_GRAPHQL_URL": f"{self.url}/graphql",
            "GITHUB_REPOSITORY": "acme/models",
        }

    def planted(self, body: str, login: str = JOBS_OWN, user_id: int | None = None) -> None:
        self._last += 1
        user: dict[str, Any] = {"login": login}
        user |= {} if user_id is None else {"id": user_id}
        self.comments.append({"id": self._last, "body": body, "user": user})

    def made(self, method: str) -> list[str]:
        return [each for each in self.requests if each.startswith(f"{method} ")]

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        method, _, path = asked.partition(" ")
        is_app = self.login.endswith("[bot]")
        plain: dict[str, Answer] = {
            "/graphql": (200, {"data": {"viewer": {"login": self.login}}}),
            "/user": (403, {}) if is_app else (200, {"login": self.login}),
        }
        if path in plain:
            return plain[path]
        if path.endswith("/pulls"):
            return 200, self.pulls
        if path.endswith("/check-runs"):
            self.checks.append({"id": len(self.checks) + 1, **body})
            return 201, self.checks[-1]
        if not path.endswith("/issues/7/comments"):
            known = self.checks if "/check-runs" in path else self.comments
            return self._rewritten(known, asked, body)
        if method == "POST":
            self.planted(body["body"], self.login, self.user_id)
            return 201, self.comments[-1]
        page, size = int(query["page"]), int(query["per_page"])
        return 200, self.comments[(page - 1) * size : page * size]

    def _rewritten(self, known: list[dict[str, Any]], asked: str, body: dict[str, Any]) -> Answer:
        identity = asked.rsplit("/", 1)[1]
        found = [each for each in known if str(each["id"]) == identity]
        if asked.startswith("DELETE "):
            known[:] = [each for each in known if each not in found]
            return (204, None) if found else (404, {})
        for each in found:
            each.update(body)
        return (200, found[0]) if found else (404, {})


def github_server() -> AbstractContextManager[GitHubServer]:
    return serving(GitHubServer())
