"""Who may look and who may write: tokens, links that only show, guesses, proxies."""

import hmac
import logging
import sys
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import FrameType
from typing import Any

import pytest
from fastapi.testclient import TestClient

from app.access import BLOCKED_SECONDS, MOST_GUESSES, Guesses, TokenCheck
from app.cli import main
from app.forms import FormTokens
from app.main import create_app
from app.settings import Settings, SettingsError
from tests.build.small_trace import KEY, small_folder

TOKEN = "0123456789abcdef0123"
VIEW = "view-0123456789abcdef"
PROXY = ("203.0.113.5", 50_000)
SERVE = ["serve", "--port", "0"]


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return small_folder(tmp_path_factory.mktemp("small")).root


@pytest.fixture
def client_of(root: Path) -> Callable[..., TestClient]:
    """Makes clients; `address` is where they come from."""

    def make(*, address: tuple[str, int] = ("127.0.0.1", 50_000), base_url: str = "http://127.0.0.1", **more: Any) -> TestClient:
        return TestClient(create_app(Settings(database=root, **more)), base_url=base_url, follow_redirects=False, client=address)

    return make


def test_a_link_becomes_a_cookie_that_scripts_cannot_read(client_of: Callable[..., TestClient]) -> None:
    client = client_of(token=TOKEN)
    away = client.get(f"/t/{KEY}/sockets?port=443&token={TOKEN}")
    assert (away.status_code, away.headers["location"]) == (303, f"/t/{KEY}/sockets?port=443")
    cookie = away.headers["set-cookie"].lower()
    assert "httponly" in cookie
    assert "samesite=lax" in cookie
    assert "secure" not in cookie
    assert client.get("/").status_code == 200


@pytest.mark.parametrize("path", ["//evil.example/", "/%2F%2Fevil.example", "/\\evil.example", "/a%3Fb%0d%0aX: y"])
def test_a_link_leads_nowhere_else(client_of: Callable[..., TestClient], path: str) -> None:
    away = client_of(token=TOKEN).get(f"http://127.0.0.1{path}", params={"token": TOKEN})
    assert away.status_code == 303
    location = away.headers["location"]
    assert location.startswith("/")
    assert not location.startswith(("//", "/\\"))
    assert "\n" not in location
    assert "x" not in away.headers


def test_a_link_that_only_shows_lets_nothing_be_written(client_of: Callable[..., TestClient]) -> None:
    viewer, owner = (client_of(token=TOKEN, view_token=VIEW) for _ in range(2))
    assert viewer.get(f"/?token={VIEW}").status_code == 303
    assert owner.get(f"/?token={TOKEN}").status_code == 303
    for path in ("/", f"/t/{KEY}", f"/t/{KEY}/notes", f"/t/{KEY}/sockets"):
        assert 'method="post"' not in viewer.get(path).text
    for path in (f"/t/{KEY}", f"/t/{KEY}/notes"):
        assert 'method="post"' in owner.get(path).text
    for path in (f"/t/{KEY}/notes", f"/t/{KEY}/notes/delete", "/uploads", "/uploads/x/cancel", "/nowhere"):
        refused = viewer.post(path, data={"text": "x", "object": ""})
        assert (refused.status_code, "only shows" in refused.text) == (403, True)
    assert viewer.get("/", headers={"Authorization": f"Bearer {TOKEN}"}).status_code == 200, "with the other one it may"


@pytest.mark.folder("a dashboard of a server takes no files")
def test_who_may_write_may_send_files(client_of: Callable[..., TestClient]) -> None:
    owner = client_of(token=TOKEN, view_token=VIEW)
    assert owner.get(f"/?token={TOKEN}").status_code == 303
    assert 'method="post"' in owner.get("/").text


def test_both_tokens_work_as_a_bearer(client_of: Callable[..., TestClient]) -> None:
    client = client_of(token=TOKEN, view_token=VIEW)
    for token, status in ((TOKEN, 415), (VIEW, 403), ("x" * 20, 401)):
        assert client.post(f"/t/{KEY}/notes", headers={"Authorization": f"Bearer {token}"}).status_code == status


WRONG = {
    "last": TOKEN[:-1] + "x",
    "first": "x" + TOKEN[1:],
    "short": TOKEN[:4],
    "one": "0",
    "long": TOKEN * 50,
    "other": "y" * 20,
}


@pytest.fixture
def compared(monkeypatch: pytest.MonkeyPatch) -> list[tuple[bytes, bytes]]:
    """What was compared in constant time since the last look."""
    real, seen = hmac.compare_digest, list[tuple[bytes, bytes]]()

    def watched(one: bytes, other: bytes) -> bool:
        seen.append((one, other))
        return real(one, other)

    monkeypatch.setattr(hmac, "compare_digest", watched)
    return seen


@pytest.mark.parametrize("given", [TOKEN, VIEW, *WRONG.values()], ids=["token", "view", *WRONG])
@pytest.mark.parametrize("way", ["bearer", "cookie", "link"])
def test_each_token_is_compared_whole_with_both_of_ours(
    client_of: Callable[..., TestClient], compared: list[tuple[bytes, bytes]], given: str, way: str
) -> None:
    """In constant time, and none is let go early: for its length, its first letter, or since the other one fitted."""
    client = client_of(token=TOKEN, view_token=VIEW)
    if way == "cookie":
        client.cookies.set("sockscope_token", given)
    headers = {"Authorization": f"Bearer {given}"} if way == "bearer" else {}
    answer = client.get(f"/?token={given}" if way == "link" else "/", headers=headers)
    assert answer.status_code == (401 if given in WRONG.values() else 303 if way == "link" else 200)
    once = [(given.encode(), TOKEN.encode()), (given.encode(), VIEW.encode())]
    assert compared == once * (2 if way == "link" and answer.status_code == 401 else 1)


def test_every_wrong_token_takes_the_same_steps(root: Path) -> None:
    def steps(work: Callable[[], object]) -> list[tuple[str, int]]:
        seen = []

        def look(frame: FrameType, event: str, _: object) -> Callable[..., Any]:
            if "/app/" in frame.f_code.co_filename.replace("\\", "/"):
                seen.append((event, frame.f_lineno))
            return look

        before = sys.gettrace()
        sys.settrace(look)
        try:
            work()
        finally:
            sys.settrace(before)
        return seen

    check = TokenCheck(create_app(Settings(database=root)), TOKEN, VIEW, "")
    taken = {name: steps(partial(check._rights, given)) for name, given in WRONG.items()}
    assert len(taken["short"]) > 5
    assert all(one == taken["short"] for one in taken.values())


def test_tokens_of_forms_are_compared_in_constant_time(compared: list[tuple[bytes, bytes]]) -> None:
    tokens = FormTokens(b"secret")
    right = tokens.token_of("cookie")
    first, last = (f"{int(digits, 16) ^ 1:02x}" for digits in (right[:2], right[-2:]))
    wrong = (tokens.token_of("another"), first + right[2:], right[:-2] + last, right[:8], right * 4, "")
    assert tokens.fits(right, "cookie")
    assert not any(tokens.fits(one, "cookie") for one in wrong)
    assert len(compared) == 1 + len(wrong)
    assert len({code for _, code in compared}) == 1


def test_guesses_are_heard_no_more_after_some(client_of: Callable[..., TestClient], caplog: pytest.LogCaptureFixture) -> None:
    client = client_of(token=TOKEN, address=("198.51.100.1", 1))
    with caplog.at_level(logging.WARNING, "sockscope"):
        seen = [client.get(f"/?token=wrong{n}").status_code for n in range(MOST_GUESSES + 3)]
    assert seen == [401] * MOST_GUESSES + [429] * 3
    refused = client.get(f"/?token={TOKEN}")
    assert refused.status_code == 429
    assert 1 <= int(refused.headers["retry-after"]) <= BLOCKED_SECONDS
    assert len(caplog.records) == 1
    assert "wrong" not in caplog.text.replace("wrong tokens", ""), "what was tried is in no log"


def test_an_old_cookie_is_one_guess_however_often_it_comes(client_of: Callable[..., TestClient]) -> None:
    client = client_of(token=TOKEN)
    client.cookies.set("sockscope_token", "of-the-server-before")
    assert {client.get("/").status_code for _ in range(3 * MOST_GUESSES)} == {401}
    assert client.get(f"/?token={TOKEN}").status_code == 303


def test_a_request_without_a_token_is_no_guess(client_of: Callable[..., TestClient]) -> None:
    client = client_of(token=TOKEN)
    assert {client.get("/").status_code for _ in range(3 * MOST_GUESSES)} == {401}


def test_a_block_ends_and_holds_for_one_client() -> None:
    now = [100.0]
    guesses = Guesses(lambda: now[0])
    for n in range(MOST_GUESSES):
        assert guesses.wait_seconds("2001:db8::1") == 0
        guesses.note("2001:db8::1", f"{n}")
    assert guesses.wait_seconds("2001:db8::ffff:1") > 0, "the same network"
    assert guesses.wait_seconds("2001:db8:1::1") == 0
    assert guesses.wait_seconds("192.0.2.1") == 0
    now[0] += BLOCKED_SECONDS + 1
    assert guesses.wait_seconds("2001:db8::1") == 0
    guesses.note("2001:db8::1", "again")
    assert guesses.wait_seconds("2001:db8::1") == 0


def test_guesses_of_many_clients_stay_in_bounds() -> None:
    guesses = Guesses(lambda: 0.0)
    for n in range(10_000):
        guesses.note(f"client {n}", "x")
    assert len(guesses._seen) == 4096


def test_forwarded_headers_count_from_trusted_addresses_only(client_of: Callable[..., TestClient]) -> None:
    says = {"X-Forwarded-Host": "traces.example", "X-Forwarded-Proto": "https", "X-Forwarded-For": "198.51.100.9"}
    more = {"token": TOKEN, "allowed_hosts": ("traces.example",), "trusted_proxies": ("203.0.113.0/24",)}
    believed = client_of(address=PROXY, **more).get(f"/?token={TOKEN}", headers=says)
    assert "secure" in believed.headers["set-cookie"].lower()
    stranger = client_of(address=("198.51.100.1", 1), **more).get(f"/?token={TOKEN}", headers=says)
    assert "secure" not in stranger.headers["set-cookie"].lower()
    nobody = client_of(address=PROXY, token=TOKEN, allowed_hosts=("traces.example",)).get(f"/?token={TOKEN}", headers=says)
    assert "secure" not in nobody.headers["set-cookie"].lower()


def test_a_forwarded_host_is_checked_too(client_of: Callable[..., TestClient]) -> None:
    client = client_of(address=PROXY, trusted_proxies=("203.0.113.5",))
    assert client.get("/", headers={"X-Forwarded-Host": "evil.example"}).status_code == 421
    assert client.get("/", headers={"X-Forwarded-Host": 'a"><script>'}).status_code == 200, "no host name: not believed"


@pytest.mark.parametrize(
    ("chain", "blocked"),
    [("198.51.100.7", "198.51.100.7"), ("6.6.6.6, 198.51.100.7", "198.51.100.7"), ("198.51.100.7, 203.0.113.9", "198.51.100.7")],
)
def test_guesses_through_a_proxy_count_for_the_browser(client_of: Callable[..., TestClient], chain: str, blocked: str) -> None:
    client = client_of(address=PROXY, token=TOKEN, trusted_proxies=("203.0.113.0/24",))
    for n in range(MOST_GUESSES):
        client.get(f"/?token=wrong{n}", headers={"X-Forwarded-For": chain})
    assert client.get("/", headers={"X-Forwarded-For": blocked}).status_code == 429
    assert client.get("/", headers={"X-Forwarded-For": "198.51.100.8"}).status_code == 401


@pytest.mark.parametrize("sent", ["/sockscope", ""], ids=["left on", "taken off"])
def test_a_base_path_works_whether_or_not_the_proxy_takes_it_off(client_of: Callable[..., TestClient], sent: str) -> None:
    client = client_of(
        address=PROXY, root_path="/sockscope/", trusted_proxies=("203.0.113.5",), allowed_hosts=("traces.example",), token=TOKEN
    )
    says = {"X-Forwarded-Host": "traces.example", "X-Forwarded-Proto": "https", "Authorization": f"Bearer {TOKEN}"}
    page = client.get(f"{sent}/t/{KEY}/sockets?port=443", headers=says)
    assert page.status_code == 200
    assert f"https://traces.example/sockscope/t/{KEY}/sockets?port=443" in page.text, "the link that is copied"
    assert 'href="/sockscope/static/css/' in page.text
    assert "/sockscope/sockscope" not in page.text
    assert client.get(f"{sent}/static/css/sockscope.css", headers=says).status_code == 200
    away = client.get(f"{sent}/t/{KEY}?token={TOKEN}", headers={"X-Forwarded-Host": "traces.example"})
    assert away.headers["location"] == f"/sockscope/t/{KEY}"
    assert "path=/sockscope" in away.headers["set-cookie"].lower()


def test_uploads_are_off_where_others_reach_the_server_unless_asked_for(root: Path) -> None:
    assert Settings(database=root).takes_uploads
    assert not Settings(host="192.0.2.1", token=TOKEN).takes_uploads
    assert not Settings(trusted_proxies=("127.0.0.1",)).takes_uploads
    assert Settings(host="192.0.2.1", token=TOKEN, uploads=True).takes_uploads


@pytest.mark.parametrize(
    ("settings", "part"),
    [
        (Settings(view_token=VIEW), "another one"),
        (Settings(token=TOKEN, view_token=TOKEN), "another one"),
        (Settings(token=TOKEN, view_token="short"), "too short"),
        (Settings(token="a token with blanks in it"), "letters, digits"),
        (Settings(trusted_proxies=("proxy.example",)), "10.0.0.1"),
        (Settings(root_path="/a/../b"), "base path"),
        (Settings(root_path='/"onload="'), "base path"),
        (Settings(root_path="/t"), "another base path"),
        (Settings(root_path="/static/x"), "another base path"),
    ],
)
def test_settings_that_open_a_hole_are_refused(settings: Settings, part: str) -> None:
    with pytest.raises(SettingsError, match=part):
        create_app(settings)


@pytest.mark.parametrize(
    "words",
    [["--forwarded-allow-ips", "somewhere"], ["--view-token", "short"], ["--base-path", "x"], ["--token", "x y"], ["--base-path", "/t"]],
)
def test_wrong_words_are_wrong_usage(words: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([*SERVE, *words, "--database", str(tmp_path)]) == 2
    assert "Traceback" not in capsys.readouterr().err
