"""Translates pip's package sources to uv, which does not read pip's configuration."""

import ast
import re
from collections.abc import Mapping

_LINE = re.compile(r"(global|install|:env:)\.([a-z-]+)=(.*)")
_SECTIONS = ("global", "install", ":env:")
"""The last one wins, as in pip."""
_VARIABLES = {
    "index-url": "UV_DEFAULT_INDEX",
    "extra-index-url": "UV_INDEX",
    "find-links": "UV_FIND_LINKS",
    "trusted-host": "UV_INSECURE_HOST",
    "keyring-provider": "UV_KEYRING_PROVIDER",
    "timeout": "UV_HTTP_TIMEOUT",
    "default-timeout": "UV_HTTP_TIMEOUT",
    "cert": "SSL_CERT_FILE",
    "client-cert": "SSL_CLIENT_CERT",
    "proxy": "ALL_PROXY",
}
_SEPARATED_BY_COMMAS = {"find-links"}
_NO = {"", "0", "false", "no", "off", "n", "f"}


def uv_variables(pip_config: str) -> dict[str, str]:
    """Returns uv's variables for the output of `pip config list`. An index may have a password in
    its address, so everything goes by the environment, nothing by arguments."""
    settings = _settings(pip_config)
    variables = {}
    for name, variable in _VARIABLES.items():
        separator = "," if name in _SEPARATED_BY_COMMAS else " "
        if value := separator.join(settings.get(name, "").split()):
            variables[variable] = value
    if settings.get("no-index", "").lower() not in _NO:
        variables["UV_NO_INDEX"] = "1"
    return variables


def _settings(pip_config: str) -> Mapping[str, str]:
    settings: dict[str, dict[str, str]] = {section: {} for section in _SECTIONS}
    for line in pip_config.splitlines():
        if match := _LINE.fullmatch(line.strip()):
            section, name, value = match.groups()
            settings[section][name] = _literal(value)
    return {name: value for section in _SECTIONS for name, value in settings[section].items()}


def _literal(text: str) -> str:
    try:
        return str(ast.literal_eval(text))
    except (SyntaxError, ValueError):
        return text
