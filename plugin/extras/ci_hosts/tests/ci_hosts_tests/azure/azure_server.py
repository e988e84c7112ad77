"""A server that answers as the API of Azure DevOps does, on loopback."""

from __future__ import annotations

from typing import Any

from tests.ci.json_server import Answer, JsonServer

TOKEN = "azure-job-token-0123456789"
ME, ANOTHER = "6d0fb3f9-build-service", "7a11c0de-mallory"
REPOSITORY = "5f4dcc3b-5aa7-65d6-1d83-27deb882cf99"
THREADS = f"/Vision Models/_apis/git/repositories/{REPOSITORY}/pullRequests/7/threads"


class AzureServer(JsonServer):
    """One pull request, whose threads may be written with one token."""

    def __init__(self) -> None:
        super().__init__()
        self.threads: list[Any] = []

    @property
    def texts(self) -> list[str]:
        return [thread["comments"][0]["content"] for thread in self.threads]

    def planted(self, text: str, author: str, **more: object) -> None:
        number = len(self.threads) + 100
        comment = {"id": 1, "content": text, "author": {"id": author}}
        self.threads.append({"id": number, "comments": [comment], **more})

    def answered(
        self, asked: str, query: dict[str, str], body: dict[str, Any], token: str
    ) -> Answer:
        if token != TOKEN:
            return 401, {"message": "TF400813"}
        if asked == "GET /_apis/connectionData":
            return 200, {"authenticatedUser": {"id": ME}}
        if query.get("api-version") != "7.0" or THREADS not in asked:
            return 404, {"message": "VS800075"}
        if asked == f"GET {THREADS}":
            return 200, {"value": self.threads, "count": len(self.threads)}
        if asked == f"POST {THREADS}":
            (comment,) = body["comments"]
            self.planted(comment["content"], ME, status=body["status"])
            return 200, self.threads[-1]
        number = int(asked.removeprefix(f"PATCH {THREADS}/").partition("/")[0])
        thread = next(each for each in self.threads if each["id"] == number)
        thread["comments"][0]["content"] = body["content"]
        return 200, thread["comments"][0]
