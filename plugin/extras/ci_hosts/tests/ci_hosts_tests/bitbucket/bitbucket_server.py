"""A server that answers as Bitbucket's API does, on loopback."""

from __future__ import annotations

from typing import Any

from tests.ci.json_server import Answer, JsonServer

TOKEN = "ATCTT-adversary-0123456789"
ME, ANOTHER = "a token", "mallory"
COMMENTS = "/repositories/acme/models/pullrequests/19/comments"
REPORT = "/repositories/acme/models/commit/{commit}/reports/tunegate"


class BitbucketServer(JsonServer):
    """One pull request, whose comments may be written with one token."""

    def __init__(self) -> None:
        super().__init__()
        self.comments: list[Any] = []
        self.reports: dict[str, dict[str, Any]] = {}

    @property
    def texts(self) -> list[str]:
        return [comment["content"]["raw"] for comment in self.comments]

    def planted(self, text: str, author: str, **more: object) -> None:
        number = len(self.comments) + 100
        self.comments.append({"id": number, "content": {"raw": text}, "author": author, **more})

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        if token != TOKEN:
            return 401, {"error": {"message": "Token is invalid"}}
        method, _, path = asked.partition(" ")
        if "/reports/" in path:
            self.reports[path] = body
            return 200, body
        if not path.startswith(COMMENTS):
            return 404, {}
        if method == "GET":
            return 200, self._page(int(query["page"]), int(query["pagelen"]))
        return self._changed(method, path, body)

    def _changed(self, method: str, path: str, body: dict[str, Any]) -> Answer:
        if method == "POST":
            self.planted(body["content"]["raw"], ME)
            return 201, self.comments[-1]
        comment = next(each for each in self.comments if path.endswith(f"/{each['id']}"))
        if comment["author"] != ME:
            return 403, {"error": {"message": "You may only edit your own comments"}}
        comment["content"] = body["content"]
        return 200, comment

    def _page(self, number: int, size: int) -> dict[str, object]:
        values = self.comments[(number - 1) * size : number * size]
        is_last = number * size >= len(self.comments)
        return {"values": values, **({} if is_last else {"next": f"{self.url}/next"})}
