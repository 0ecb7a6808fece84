"""What people type into the search box, taken apart."""

import pytest

from app.queries.typed import Typed, statuses_in_words, typed


@pytest.mark.parametrize(
    ("text", "meant"),
    [
        ("8443", Typed("8443")),
        (":8443", Typed("8443", "port")),
        ("port 8443", Typed("8443", "port")),
        ("Port=8443", Typed("8443", "port")),
        ("PID: 4312", Typed("4312", "process")),
        ("process id 4312", Typed("4312", "process")),
        ("error 10060", Typed("10060", "error")),
        ("reason 4", Typed("4", "reason")),
        ("ffffc40e`8a015230", Typed("ffffc40e8a015230")),
        ("my app.exe (4312)", Typed("my app.exe (4312)", named=("my app.exe", 4312))),
        ("ntdll.dll+0x2b5f3", Typed("ntdll.dll+0x2b5f3", frame=("ntdll.dll", 0x2B5F3))),
        ("203.0.113", Typed("203.0.113", network="203.0.113.0/24")),
        ("10.20.", Typed("10.20.", network="10.20.0.0/16")),
        ("300.1", Typed("300.1")),
        ("+9.418\u202f133 s", Typed("+9.418\u202f133 s", moment_ns=9_418_133_000)),
        ("9.5 s", Typed("9.5 s", moment_ns=9_500_000_000)),
        ("9s", Typed("9s", moment_ns=9_000_000_000)),
        ("12 s", Typed("12 s", moment_ns=12_000_000_000)),
        ("+12", Typed("+12", moment_ns=12_000_000_000)),
        ("`", Typed("`")),
        ("port", Typed("port")),
        ("", Typed("")),
    ],
)
def test_what_is_typed_says_what_it_is(text: str, meant: Typed) -> None:
    assert typed(text) == meant


def test_errors_are_found_by_words_of_their_names() -> None:
    assert 0xC000020D in statuses_in_words("connection reset")
    assert 0xC00000B5 in statuses_in_words("timeout")
    assert statuses_in_words("rst") == statuses_in_words("4312") == statuses_in_words("status") == ()
