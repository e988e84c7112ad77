"""The configuration of pip, in uv's variables."""

from __future__ import annotations

from tunegate_environment.pip_settings import uv_variables

SHOWN = r"""
:env:.disable-pip-version-check='1'
:env:.index-url='https://u:p@of.the/job/simple'
global.cert='/etc/own.pem'
global.extra-index-url='\nhttps://a.example/simple\nhttps://b.example/simple'
global.find-links='/srv/wheels /srv/more'
global.index-url='https://of.the/machine/simple'
global.proxy='http://proxy:3128'
global.timeout='90'
global.trusted-host='a.example b.example:8443'
install.no-index='no'
"""


def test_each_setting_that_says_where_packages_come_from_is_kept() -> None:
    assert uv_variables(SHOWN) == {
        "UV_DEFAULT_INDEX": "https://u:p@of.the/job/simple",
        "UV_INDEX": "https://a.example/simple https://b.example/simple",
        "UV_FIND_LINKS": "/srv/wheels,/srv/more",
        "UV_INSECURE_HOST": "a.example b.example:8443",
        "UV_HTTP_TIMEOUT": "90",
        "SSL_CERT_FILE": "/etc/own.pem",
        "ALL_PROXY": "http://proxy:3128",
    }


def test_a_setting_for_installing_beats_the_general_one() -> None:
    shown = "install.no-index='true'\nglobal.no-index='false'\nglobal.timeout='5'\n"
    assert uv_variables(shown) == {"UV_NO_INDEX": "1", "UV_HTTP_TIMEOUT": "5"}


def test_what_is_not_understood_is_left_out() -> None:
    assert not uv_variables(
        "WARNING: experimental\nfreeze.timeout='10'\nuser.x\nglobal.index-url=''"
    )
