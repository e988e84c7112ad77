"""`tunegate confirm FIRST SECOND`: a verdict that needs a second machine's agreement."""

from pathlib import Path

from tunegate.artifacts import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.commands.comparing import ConfirmOptions
from tunegate.cli.handlers.reporting import write_json
from tunegate.cli.handlers.table import show_lines
from tunegate.decide.gate import confirm
from tunegate.report.headline import STATUS_WORDS
from tunegate.system.output.directory import opened_output


def run(options: ConfirmOptions) -> int:
    """Writes verdict.json to `--out`. Raises ArtifactError."""
    settings = options.settings
    first, second = (artifact_io.read(Path(each), Verdict) for each in options.verdicts)
    found = confirm(first, second)
    with opened_output(settings.out, "confirm") as out:
        artifact_io.write(out.path / "verdict.json", found)
    if settings.as_json:
        write_json(found)
    else:
        show_lines(
            f"{STATUS_WORDS[each.status]}: {each.model} on {each.target}: {each.reason}"
            for each in found.findings
        )
    return found.exit_code
