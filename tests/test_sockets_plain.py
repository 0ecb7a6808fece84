"""Arrays and the exact model give the same rows: ordinary traffic of several sockets, with everything that may come between."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from random import Random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tests.build import EXIT, afd, documented
from tests.build.afd_events import Where, Who
from tests.build.events import ENDPOINT, PROCESS, Event
from tests.socket_model import model
from tests.test_sockets_properties import traces

USER, KERNEL = 0x1D2_A446_0000, 0xFFFF_9A0C_3000_0000
WOULD_BLOCK, CANCELLED, RESET, TRUNCATED = 0xC000_00A3, 0xC000_0120, 0xC000_020D, 0x8000_0005
PEERS = ("192.0.2.1:53", "192.0.2.2:53", "[2001:db8::1]:443")
STREAM_MOVES = (afd.send, afd.receive, afd.receive, afd.receive)
DATAGRAM_MOVES = (afd.send_message, afd.receive_message, afd.receive_from, afd.send)


class Traffic:
    """Draws records of a few sockets; `trouble` is the share of what is not plain."""

    def __init__(self, seed: int, *, trouble: float) -> None:
        self.random = Random(seed)
        self.trouble = trouble
        self.requests = 0

    def happens(self, share: float = 1.0) -> bool:
        return self.random.random() < self.trouble * share

    def socket(self, number: int) -> Iterator[Event]:
        """Lives of one endpoint, one after another."""
        pick = self.random.choice
        is_other = number == 3
        for _ in range(pick((1, 1, 2, 3))):
            is_datagram = pick((False, False, True))
            where = Where(
                endpoint=ENDPOINT + number * 0x800,
                process=PROCESS + 0x540 * is_other,
                pid=6868 if is_other else 4120,
                is_datagram=is_datagram,
            )
            if not self.happens():
                yield afd.create(at_us=0, socket_type=2 if is_datagram else 1, process_id=where["pid"], **where)
                if not self.happens():
                    yield afd.create(at_us=0, enter_exit=EXIT, socket_type=2 if is_datagram else 1, process_id=where["pid"], **where)
            if pick((True, True, False)):
                yield afd.connect(at_us=0, address=pick(PEERS), **where)
                yield afd.connect(at_us=0, enter_exit=EXIT, **where)
            for _ in range(pick((2, 6, 20))):
                yield from self.call(where, is_datagram)
                if self.happens(0.5):
                    yield self.event(where)
            if not self.happens():
                steps = [afd.cleanup, afd.close]
                if self.happens():
                    self.random.shuffle(steps)
                for step in steps:
                    yield step(at_us=0, **where)
                    if not self.happens(0.5):
                        yield step(at_us=0, enter_exit=EXIT, **where)

    def call(self, where: Where, is_datagram: bool) -> Iterator[Event]:
        """A transfer from post to completion, now and then with something odd about it."""
        pick = self.random.choice
        move = pick(DATAGRAM_MOVES if is_datagram else STREAM_MOVES)
        self.requests += 1
        is_slow = pick((False, True))
        tid = pick((11, 12, 13))
        own = USER + (where["endpoint"] - ENDPOINT) * 64 + tid * 0x2000
        buffer = KERNEL + self.requests % 7 * 0x100 if is_slow and pick((True, False)) else own
        if self.happens():
            buffer = pick((USER, USER + 100, KERNEL, 0))
        activity = 0x4000_0000 + self.requests % 50 * 64 if is_slow else 0
        if self.happens(0.5):
            activity = pick((0, 0x4000_0000))
        length = pick((0, 100, 4096, 4096))
        address = pick((None, *PEERS))
        base: Where = {**where, "is_fast": not is_slow, "activity": activity, "tid": tid}
        status = RESET if self.happens(0.2) else 0
        if address is not None and move is afd.send_message:
            yield afd.send_message(at_us=0, buffer=buffer, length_bytes=length, status=status, address=address, **base)
        else:
            yield move(at_us=0, buffer=buffer, length_bytes=length, status=status, **base)
        if pick((True, False)) and not is_datagram:
            yield afd.data_indication(at_us=0, length_bytes=1460, **where)
        if self.happens(0.5):
            return
        status = pick((CANCELLED, RESET, TRUNCATED, 0x103)) if self.happens(0.5) else pick((0, 0, 0, 0, WOULD_BLOCK))
        done: Where = {**base, "tid": pick((tid, tid, 14)), "pid": pick((where["pid"], 0))}
        if self.happens(0.3):
            buffer += 0x40
        got = pick((length, 37))
        if move is afd.receive_message and pick((True, False)):
            yield afd.receive_message(at_us=0, enter_exit=EXIT, buffer=buffer, length_bytes=got, status=status, address=pick(PEERS), **done)
        else:
            yield move(at_us=0, enter_exit=EXIT, buffer=buffer, length_bytes=got, status=status, **done)
        if pick((False, False, True)):
            handed_on: Where = {**where, "location": 3073}
            yield move(at_us=0, enter_exit=EXIT, buffer=KERNEL + 0x5000, length_bytes=length, **handed_on)
        if status == WOULD_BLOCK and pick((True, False)):
            again: Where = {**base, "is_fast": False, "activity": 0x77}
            yield move(at_us=0, buffer=pick((KERNEL, own, 0)), length_bytes=length, **again)

    def event(self, where: Where) -> Event:
        """Something else that happens at the socket."""
        pick = self.random.choice
        other = ENDPOINT + pick((0, 1, 2)) * 0x800
        old = Who(endpoint=where["endpoint"], process=where["process"], pid=where["pid"])
        stranger: Where = {**where, "process": PROCESS + 0x540}
        return pick(
            (
                lambda: afd.abort(at_us=0, reason=pick((4, 7)), **where),
                lambda: afd.drop(at_us=0, reason=2, address=PEERS[0], **where),
                lambda: afd.disconnect(at_us=0, **where),
                lambda: afd.accept_ex(at_us=0, enter_exit=EXIT, accepted=other, address=PEERS[1], **where),
                lambda: afd.bind(at_us=0, enter_exit=EXIT, address="0.0.0.0:8443", **where),
                lambda: afd.option(at_us=0, option=7, value=1, **where),
                lambda: afd.connect(at_us=0, address=pick(PEERS), **where),
                lambda: afd.data_indication(at_us=0, length_bytes=9, **where),
                lambda: afd.create(at_us=0, enter_exit=EXIT, status=0xC000_009A, **where),
                lambda: documented.posted("Send", at_us=0, buffer=USER, length_bytes=100, **old),
                lambda: documented.completed("Recv", at_us=0, buffer=USER, **old),
                lambda: afd.send(at_us=0, **stranger),
                lambda: documented.create(at_us=0, **old),
            )
        )()

    def records(self) -> list[Event]:
        """All of it, mixed, in time order."""
        lives = [list(self.socket(number)) for number in range(self.random.choice((1, 2, 4)))]
        clock, placed = 0.0, []
        while any(lives):
            life = self.random.choice([life for life in lives if life])
            for _ in range(min(self.random.choice((1, 2, 5)), len(life))):
                clock += self.random.choice((0, 0.1, 0.1, 1)) if self.trouble else 0.1
                placed.append(replace(life.pop(0), at_us=clock))
        return placed


@pytest.mark.parametrize("trouble", [0.0, 0.05, 0.3])
@given(seed=st.integers(0, 1 << 32), cuts=st.lists(st.integers(1, 200), max_size=3), kept=st.sampled_from([0, 2, 10_000]))
@settings(max_examples=60, deadline=None)
def test_ordinary_traffic(trouble: float, seed: int, cuts: list[int], kept: int) -> None:
    traffic = Traffic(seed, trouble=trouble)
    events = traffic.records()
    on_cpu = [traffic.random.choice((0, 0, 1)) for _ in events]
    exact = model(events, on_cpu=on_cpu, plain_from=None, kept=kept)
    plain = model(events, on_cpu=on_cpu, plain_from=1, cuts=cuts, kept=kept)
    assert plain.tables == exact.tables
    assert plain.problems == exact.problems


@given(traces(), st.lists(st.integers(1, 59), max_size=3), st.integers(0, 2))
@settings(max_examples=60, deadline=None)
def test_any_records(events: list[Event], cuts: list[int], kept: int) -> None:
    assert model(events, plain_from=1, cuts=cuts, kept=kept).tables == model(events, plain_from=None, kept=kept).tables


def test_most_of_ordinary_traffic_is_plain() -> None:
    rows: Counter[str] = Counter()
    plain: Counter[str] = Counter()
    for seed in range(20):
        found = model(Traffic(seed, trouble=0).records(), plain_from=8)
        plain.update(found.in_blocks)
        rows.update({table: len(lines) for table, lines in found.tables.items()})

    shares = {table: plain[table] / rows[table] for table in ("operation", "socket_event", "skipped")}
    assert shares["operation"] > 0.5, shares
    assert shares["skipped"] > 0.3, shares
    assert shares["socket_event"] > 0.1, shares
