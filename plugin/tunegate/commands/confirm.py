"""`tunegate confirm FIRST SECOND`: a verdict that needs a second machine's."""

from __future__ import annotations

from pathlib import Path

from tunegate import artifact_io
from tunegate.artifacts.verdicts import Verdict
from tunegate.cli.commands.confirm import ConfirmOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_lines
from tunegate.edges.output.directory import opened_output
from tunegate.render.headline import STATUS_WORDS
from tunegate.verdict.confirm import confirm


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
