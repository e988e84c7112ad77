from __future__ import annotations

import pytest

from tunegate.cli.completion import bash, fish, zsh
from tunegate.cli.main import main


@pytest.mark.parametrize(
    ("shell", "script"), [("bash", bash.script()), ("zsh", zsh.script()), ("fish", fish.script())]
)
def test_the_script_of_the_shell_is_the_product(
    shell: str, script: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["completion", shell]) == 0
    assert capsys.readouterr() == (script, "")


def test_a_shell_that_is_not_known_is_a_usage_error(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "tcsh"]) == 2
    assert "bash" in capsys.readouterr().err
