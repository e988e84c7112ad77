"""Whole objects of a store that are not what they seem: bodies, and names."""

import msgspec
import zstandard

from tests.security.malformed_corpus import GOOD
from tests.support.tuning_records import TARGET, hexdigest, make_record
from tunegate_cache.format import segment
from tunegate_cache.format.names import segment_name


class CorruptBody(msgspec.Struct, frozen=True):
    """`digest` is what the name says; empty where it says the truth."""

    body: bytes
    message: str
    digest: str = ""

    @property
    def named(self) -> str:
        return self.digest or segment.segment_digest(self.body)


def squeezed(text: bytes, *, level: int = 3, window_log: int = 0) -> bytes:
    """The text compressed without the length in the header, as one who hides it would write."""
    parameters = zstandard.ZstdCompressionParameters.from_level(
        level, window_log=window_log, write_content_size=False
    )
    compressor = zstandard.ZstdCompressor(compression_params=parameters).compressobj()
    return compressor.compress(text) + compressor.flush()


HONEST = segment.pack_segment([make_record()])
OTHER = segment.pack_segment([make_record("other")])
MEGABYTE = 1 << 20
UNLIKE, BOMB, NO_DATA = "not what its name says", "more than is allowed", "not zstandard data"
BODIES = {
    "a body of another name": CorruptBody(OTHER, UNLIKE, segment.segment_digest(HONEST)),
    "a changed bit": CorruptBody(
        HONEST[:40] + bytes([HONEST[40] ^ 1]) + HONEST[41:], UNLIKE, segment.segment_digest(HONEST)
    ),
    "half a body": CorruptBody(HONEST[: len(HONEST) // 2], UNLIKE, segment.segment_digest(HONEST)),
    "no body": CorruptBody(b"", UNLIKE, segment.segment_digest(HONEST)),
    "a name in capitals": CorruptBody(HONEST, UNLIKE, segment.segment_digest(HONEST).upper()),
    "text that is not packed": CorruptBody(GOOD, NO_DATA),
    "a web page": CorruptBody(b"<html>503</html>", NO_DATA),
    "another kind of archive": CorruptBody(b"\x1f\x8b\x08\x00" + b"\0" * 20, NO_DATA),
    "a bomb of spaces": CorruptBody(squeezed(b" " * (17 * MEGABYTE)), BOMB),
    "a bomb of lines": CorruptBody(squeezed(b"\n" * (17 * MEGABYTE)), BOMB),
    "a bomb of records": CorruptBody(squeezed((GOOD + b"\n") * 30_000), BOMB),
    "a bomb in a bomb": CorruptBody(squeezed(squeezed(b"\0" * (64 * MEGABYTE)) * 9999), BOMB),
    "a bomb below the ratio": CorruptBody(squeezed(b"[]\n" * 300_000), "more than 20000 records"),
    "something behind": CorruptBody(HONEST + b"#!/bin/sh\n", NO_DATA),
    "a window of 128 megabytes": CorruptBody(squeezed(b"x" * 99, window_log=27), NO_DATA),
    "a foreign dictionary": CorruptBody(
        zstandard.ZstdCompressor(
            dict_data=zstandard.ZstdCompressionDict(
                GOOD * 9, dict_type=zstandard.DICT_TYPE_RAWCONTENT
            )
        ).compress(GOOD)[:30],
        NO_DATA,
    ),
}
ODD_LINES = {
    "a body in two frames": HONEST + OTHER,
    "an empty text": squeezed(b""),
    "lines with nothing": squeezed(b"\n" * 19_999),
    "lines of Windows": squeezed(GOOD + b"\r\n" + GOOD),
    "lines of noughts": squeezed(b"\0\n" * 1000),
}
"""Bodies that are no corrupt segments: what is good of them is used, the rest is counted."""

NAME = segment_name("main", TARGET, milliseconds=1, writer="0" * 8, digest=hexdigest("body")).name
NAMES = {
    "a step up": NAME.replace("/main/", "/../"),
    "a step up inside": NAME.replace("/main/", "/pr/../main/"),
    "a step up, encoded": NAME.replace("/main/", "/%2e%2e/"),
    "a step up of Windows": NAME.replace("/main/", "/..\\main/"),
    "a hidden zone": NAME.replace("/main/", "/.partial/"),
    "an absolute path": "/" + NAME,
    "an address": f"file:///{NAME}",
    "an empty word": NAME.replace("/main/", "/main//"),
    "an option": NAME.replace("/main/", "/--delete/"),
    "a line's end": NAME + "\n",
    "a zero byte": NAME.replace("main", "ma\0in"),
    "a letter that looks the same": NAME.replace("main", "m\u0430in"),
    "digits of another script": NAME.replace("0000000000001", "000000000000\u0661"),
    "a fourteenth digit": NAME.replace("0000000000001", "00000000000001"),
    "a time below zero": NAME.replace("0000000000001", "-000000000001"),
    "a digest in capitals": NAME.replace(hexdigest("body"), hexdigest("body").upper()),
    "a short digest": NAME.replace(hexdigest("body"), hexdigest("body")[:63]),
    "another ending": NAME.replace(".zst", ".pkl"),
    "two endings": NAME + ".zst",
    "another root": NAME.replace("ms1/", "ms2/", 1),
    "a pack": f"ms1/z/main/g/{TARGET[:16]}/pack/{hexdigest('body')}.pack",
    "a zone without end": NAME.replace("/main/", "/" + "a/g/" * 50_000),
    "a word without end": NAME.replace("/main/", "/" + "a" * 200_000 + "/"),
    "nothing": "",
}
