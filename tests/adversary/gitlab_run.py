"""The command line in a checkout and an environment that a job of GitLab would have."""

import os
import subprocess
import sys
from pathlib import Path

from tests.adversary.action_run import Job
from tests.ci.gitlab.gitlab_server import TOKEN, merge_request
from tests.support.programs import run_program

JOB_TOKEN = "glcbt-job-token-0123456789"


class GitLabJob:
    """One merge request of the repository of `Job`, and what its pipelines do."""

    def __init__(self, directory: Path) -> None:
        self.job = Job(directory)
        self.root = directory / "workspace"

    @property
    def files(self) -> dict[str, str]:
        """The files that GitLab would take from the job."""
        return {path.name: path.read_text() for path in (self.root / ".tunegate").glob("ci-*")}

    def request(self, commit: str, **more: str) -> dict[str, str]:
        return merge_request(CI_COMMIT_SHA=commit, **more)

    def run(
        self,
        variables: dict[str, str],
        *words: str,
        api: str = "http://127.0.0.1:9",
        code: int | None = None,
    ) -> subprocess.CompletedProcess[str]:
        """Fails the test where the run ends with another exit code than `code`."""
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": str(self.job.directory),
            "GITLAB_CI": "true",
            "CI_API_V4_URL": api,
            "CI_DEFAULT_BRANCH": "main",
            "CI_JOB_URL": "https://gitlab.example/acme/models/-/jobs/9",
            "CI_JOB_TOKEN": JOB_TOKEN,
            "CI_PROJECT_DIR": str(self.root),
            "CI_PROJECT_PATH": "acme/models",
            "TUNEGATE_GITLAB_TOKEN": TOKEN,
            **variables,
        }
        line = (sys.executable, "-P", "-m", "tunegate", *(words or ("run",)))
        return run_program(
            [*line, "--ci", "auto", "--comment", "always"],
            cwd=self.root,
            env=environment,
            code=code,
        )
