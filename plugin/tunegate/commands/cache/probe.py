"""`tunegate cache probe`: does the store keep its promises?"""

from __future__ import annotations

import msgspec

from tunegate.cache_admin import answering, open_cache_admin
from tunegate.cli.commands.cache.probe import ProbeOptions
from tunegate.commands.standard_output import write_json
from tunegate.commands.table import show_table
from tunegate.errors import PASS, UNFIT
from tunegate_cache.stores.conformance import GuaranteeResult, probe


class Probe(msgspec.Struct, frozen=True, kw_only=True):
    schema: int = 1
    location: str
    findings: tuple[GuaranteeResult, ...]


def run(options: ProbeOptions) -> int:
    """Exit code 4 when the cache cannot work with this store at all."""
    settings = options.settings
    admin = open_cache_admin(settings)
    with answering(admin.config):
        findings = probe(admin.store)
    if settings.as_json:
        write_json(Probe(location=admin.config.url, findings=findings))
    else:
        show_table(
            admin.config.url,
            ("the store", "", "needed", "detail"),
            (
                (f.name, "yes" if f.ok else "no", "yes" if f.needed else "", f.detail)
                for f in findings
            ),
        )
    return PASS if all(f.ok for f in findings if f.needed) else UNFIT
