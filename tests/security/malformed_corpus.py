"""Lines that are no usable record: what is known to crash, hang, corrupt or deceive a compiler that
replays foreign traces, and what deceives readers of JSON. Each with the reason that counts it."""

import json

import msgspec

from tests.support.tuning_records import hexdigest, make_record
from tunegate_cache.format import record_codec as wire

GOOD = wire.encode_record(make_record())
PRAGMA = ["Annotate", ["l24", '"int f(void){return 1;}"'], ["pragma_import_c"], []]
LOAD_IR = ["Annotate", ["l24", '"/tmp/x.ll"'], ["pragma_import_llvm"], []]
WORKLOAD = ["7f3a", "AAAAAAAAAAB7Im5vZGVzIjogW119"]


class Malformed(msgspec.Struct, frozen=True):
    line: bytes
    reason: str


def changed(**fields: object) -> bytes:
    """A good line with other values."""
    return json.dumps({**json.loads(GOOD), **fields}).encode()


def inside(part: str, **fields: object) -> bytes:
    """A good line with other values in one of its objects."""
    return changed(**{part: {**json.loads(GOOD)[part], **fields}})


def added(text: bytes) -> bytes:
    """A good line with one more field, as text that no JSON writer would write."""
    return GOOD[:-1] + b"," + text + b"}"


def replaced(old: bytes, new: bytes) -> bytes:
    assert GOOD.count(old) == 1, old
    return GOOD.replace(old, new)


def stock(*instructions: object, decisions: object = (), seconds: object = (1.0,)) -> bytes:
    """A line of the stock database: workload number, trace, run_secs, target, arguments."""
    return json.dumps([0, [[instructions, decisions], seconds, {"kind": "llvm"}, []]]).encode()


INSTRUCTIONS = {
    "a stock trace with a pragma of C source": stock(PRAGMA),
    "a stock trace with a pragma that opens a file": stock(LOAD_IR),
    "a stock trace that changes a type": stock(["UnsafeSetDType", ["b0"], [0, "float16"], []]),
    "a stock trace that changes a layout": stock(
        ["TransformLayout", ["b0"], [0, "write", "i, j: [j, i]", True], []]
    ),
    "a stock trace that hides an access": stock(["UnsafeHideBufferAccess", ["b0"], [], []]),
    "a stock trace that names an intrinsic": stock(["Tensorize", ["b0"], ["any", False], []]),
    "a stock trace that never ends": stock(["SamplePerfectTile", ["l0"], [4, 0], ["a", "b"]]),
    "a stock decision beyond the trace": stock(PRAGMA, decisions=[[13, [1]]]),
    "a stock time below zero": stock(seconds=[-1.0]),
    "a stock workload": json.dumps(WORKLOAD).encode(),
    "half a stock line": stock(PRAGMA)[:40],
    "an instruction as a decision": changed(dec=[PRAGMA]),
    "an instruction as a factor": changed(dec=[[3, [PRAGMA, 16]]]),
    "a text as a factor": changed(dec=[[3, ["4; exit()", 16]]]),
    "a type as a decision": changed(dec=[[3, "float16"]]),
    "a number in quotes": changed(dec=[[3, ["4", "16"]]]),
    "a module as a workload": changed(wk=WORKLOAD),
}
DECISIONS = {
    "a negative index": (changed(dec=[[-3, [4, 16]]]), "bad decision"),
    "an index beyond every integer": (changed(dec=[[2**53 + 1, [2]]]), "bad decision"),
    "an index of 4000 digits": (
        replaced(b"[5,[2]]", b"[" + b"9" * 4000 + b",[2]]"),
        "bad decision",
    ),
    "a decision twice": (changed(dec=[[3, [4, 16]], [3, [4, 16]]]), "decisions out of order"),
    "decisions backwards": (changed(dec=[[5, [2]], [3, [4, 16]]]), "decisions out of order"),
    "a factor of 0": (changed(dec=[[3, [1, 0, 2, 16]]]), "decision out of range"),
    "a negative factor": (changed(dec=[[3, [-4, 16]]]), "decision out of range"),
    "a factor beyond every integer": (changed(dec=[[3, [2**63, 1]]]), "decision out of range"),
    "a negative choice": (changed(dec=[[3, [-3]]]), "decision out of range"),
    "no value": (changed(dec=[[3, []]]), "bad decision"),
    "33 factors": (changed(dec=[[3, [1] * 33]]), "bad decision"),
    "257 decisions": (changed(dec=[[i, [1]] for i in range(257)]), "too many decisions"),
    "10 000 decisions": (changed(dec=[[i, [1]] for i in range(10_000)]), "too large"),
    "an index without values": (changed(dec=[[3]]), "not a record"),
    "a third part": (changed(dec=[[3, [4], 1]]), "not a record"),
    "a factor that is true": (changed(dec=[[3, [True, 16]]]), "not a record"),
    "a factor that is null": (changed(dec=[[3, [None, 16]]]), "not a record"),
    "a factor with a point": (replaced(b"[4,16]", b"[4.0,16]"), "not a record"),
    "a factor with an exponent": (replaced(b"[4,16]", b"[4e0,16]"), "not a record"),
    "a choice of minus zero": (replaced(b"[5,[2]]", b"[5,[-0]]"), "minus zero"),
    "decisions of no template": (changed(th=""), "bad digest"),
}
TIMES = {
    "a negative time": (changed(ns=[-1]), "impossible time"),
    "a time of zero": (changed(ns=[0]), "impossible time"),
    "a time of minus zero": (replaced(b"1000000,", b"-0,"), "impossible time"),
    "a time above three hours": (changed(ns=[10**13 + 1]), "impossible time"),
    "one lie among good times": (changed(ns=[10**6, 10**6, 0]), "impossible time"),
    "no time": (changed(ns=[]), "bad number of times"),
    "65 times": (changed(ns=[1] * 65), "bad number of times"),
    "times of a failure": (changed(st="timeout"), "times of a failure"),
    "a time that is not a number": (replaced(b"1000000,", b"NaN,"), "not a record"),
    "a time without end": (replaced(b"1000000,", b"Infinity,"), "not a record"),
    "a time of 1e999": (replaced(b"1000000,", b"1e999,"), "not a record"),
    "a date before all": (inside("meas", ts=-1), "bad device or date"),
    "a date after all": (inside("meas", ts=2**54), "bad device or date"),
}
JSON = {
    "a key twice": (replaced(b'"v":1', b'"v":1,"v":1'), "duplicate key"),
    "a key twice, once escaped": (replaced(b'"v":1', b'"v":1,"\\u0076":1'), "duplicate key"),
    "the decisions twice": (added(b'"dec":[[3,[4,16]],[5,[2]]]'), "duplicate key"),
    "a key twice inside": (replaced(b'"mem":8', b'"mem":8,"mem":8'), "duplicate key"),
    "an unknown key twice": (added(b'"z":1,"z":2'), "duplicate key"),
    "an unknown NaN": (added(b'"z":NaN'), "not a record"),
    "an unknown Infinity": (added(b'"z":-Infinity'), "not a record"),
    "an unknown 1e999": (added(b'"z":1e999'), "number not finite"),
    "an unknown minus zero": (added(b'"z":-0'), "minus zero"),
    "an unknown minus zero with a point": (added(b'"z":[-0.0]'), "minus zero"),
    "an unknown huge integer": (added(b'"z":' + b"9" * 60_000), "number out of range"),
    "an unknown huge fraction": (added(b'"z":' + b"9" * 60_000 + b".5"), "number not finite"),
    "nine levels": (added(b'"z":' + b"[" * 8 + b"]" * 8), "nested too deep"),
    "ten thousand levels": (added(b'"z":' + b"[" * 10_000 + b"]" * 10_000), "not a record"),
    "200 000 levels": (b"[" * 200_000 + b"]" * 200_000, "too large"),
    "objects in objects": (added(b'"z":' + b'{"a":' * 5000 + b"1" + b"}" * 5000), "not a record"),
    "a million fields": (
        added(b",".join(b'"%x":1' % number for number in range(10**6))),
        "too large",
    ),
    "extents without end": (changed(ext=[2] * 4097), "bad extents"),
    "an extent of zero": (changed(ext=[0]), "bad extents"),
    "a negative extent": (changed(ext=[-64]), "bad extents"),
    "a huge version": (replaced(b'"v":1', b'"v":' + b"9" * 5000), "not a record"),
    "a version to come": (changed(v=2), "unknown version"),
    "a version of 0": (changed(v=0), "unknown version"),
    "a missing field": (replaced(b'"v":1,', b""), "not a record"),
    "half a line": (GOOD[: len(GOOD) // 2], "not a record"),
    "a line and a half": (GOOD + GOOD[:40], "not a record"),
    "a list": (b"[" + GOOD + b"]", "not a record"),
    "nothing": (b"", "not a record"),
    "an unknown status": (changed(st="fine"), "not a record"),
    "an unknown kind of device": (inside("dev", kind="tpu"), "not a record"),
    "a negative memory": (inside("dev", mem=-1), "bad device or date"),
}
TEXT = {
    "a byte order mark": (b"\xef\xbb\xbf" + GOOD, "not a record"),
    "sixteen bits a letter": (GOOD.decode().encode("utf-16"), "not a record"),
    "bytes that are no text": (replaced(b'"tvm":"', b'"tvm":"\xc0\xaf'), "not a record"),
    "unknown bytes that are no text": (added(b'"z":"\xff\xfe"'), "not JSON"),
    "half a letter": (replaced(b'"tvm":"', b'"tvm":"\\ud800'), "not a record"),
    "text written backwards": (inside("dev", name="\u202egnp.exe"), "unprintable text"),
    "an invisible letter": (inside("dev", name="c\u200bpu"), "unprintable text"),
    "a terminal's commands": (inside("src", ref="\x1b]0;x\x07"), "unprintable text"),
    "a second line": (inside("env", tvm="0.27\nGIT_TOKEN=x"), "unprintable text"),
    "a zero byte": (inside("dev", drv="\0"), "unprintable text"),
    "a digest that is a path": (changed(wk="../../../etc/passwd"), "bad digest"),
    "a template that is a path": (changed(th="../tmpl/x"), "bad digest"),
    "a template that is a pragma": (changed(th="pragma_import_c"), "bad digest"),
    "a digest in capitals": (changed(sk=hexdigest("s").upper()), "bad digest"),
    "a digest in wide digits": (changed(sk="\uff11" * 64), "bad digest"),
    "a digest with a line's end": (changed(tk=hexdigest("target") + "\n"), "bad digest"),
    "a short digest": (changed(wk=hexdigest("w")[:63]), "bad digest"),
}
CORPUS = {
    name: Malformed(*case)
    for name, case in (
        *((name, (line, "not a record")) for name, line in INSTRUCTIONS.items()),
        *DECISIONS.items(),
        *TIMES.items(),
        *JSON.items(),
        *TEXT.items(),
    )
}
SMUGGLED = {
    "a trace beside the decisions": changed(trace=[PRAGMA], dec_trace=[[0, 1]]),
    "a workload beside the digest": changed(workload=WORKLOAD, mod={"@main": "PrimFunc"}),
    "a type beside the decisions": changed(dtype="float16"),
    "a pragma in the environment": inside("env", pragma_import_llvm="/tmp/x.ll"),
}
"""Fields of no version of ours: tolerated, because later versions may say more, and dropped."""
