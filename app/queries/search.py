"""Everything in a trace that a few typed words may mean, grouped, the best first."""

import re
from collections.abc import Iterator
from dataclasses import dataclass
from urllib.parse import urlencode

from sqlalchemy import ColumnElement, Connection, and_, case, func, or_, select

from app import format as fmt
from app.links import BadLink, parse_process, parse_socket, process_link, socket_link
from app.queries.addresses import address_numbers, parse_address_range
from app.queries.names import named_addresses
from app.queries.statuses import parse_status
from app.queries.typed import statuses_in_words, typed
from collector.store.tables import THIS_TRACE, TRACE
from collector.words import OUTCOMES

__all__ = ["Group", "Hit", "search"]

_MAX = 8

_process = TRACE.tables["process"]
_socket = TRACE.tables["socket"]
_address = TRACE.tables["address"]
_operation = TRACE.tables["operation"]
_abort = TRACE.tables["abort"]
_module = TRACE.tables["module"]
_stack = TRACE.tables["stack"]
_frame = TRACE.tables["stack_frame"]


@dataclass(frozen=True, slots=True)
class Hit:
    """One thing found, or offered where it may be there or not. `link` is a path below /t/KEY/."""

    text: str
    link: str
    more: str = ""
    is_offer: bool = False


@dataclass(frozen=True, slots=True)
class Group:
    """Things of one kind; `all_link` leads to the whole list where there is one."""

    title: str
    hits: tuple[Hit, ...]
    all_link: str | None = None


def search(db: Connection, text: str) -> list[Group]:
    """What a text may mean in one trace."""
    return [group for group in _groups(db, text.strip()) if group.hits]


def _groups(db: Connection, text: str) -> Iterator[Group]:
    meant = typed(text)
    text = meant.text
    number = int(text) if text.isascii() and text.isdigit() and len(text) < 19 else None
    if meant.moment_ns is not None:
        yield Group("Moment", (Hit(f"around {fmt.since_start(meant.moment_ns)}", f"around/{meant.moment_ns}"),))
    if meant.kind == "reason" and number is not None:
        yield _reason(db, number)
        return
    if meant.may_be("error"):
        if statuses := _statuses(text):
            yield _errors(db, statuses, text)
        elif statuses := statuses_in_words(text):
            yield _errors(db, statuses, None)
    if number is not None and number <= 65_535 and meant.may_be("port"):
        yield _port(db, number)
    if number is not None and meant.may_be("process"):
        yield _processes(db, "Processes by id", _process.c.pid == number, _link("processes", pid=str(number)))
    if meant.may_be("internet"):
        yield from _internet(db, meant.network or text)
    if not meant.kind:
        yield from _linked(db, text)
        yield from _memory(db, text)
    if meant.named is not None and meant.may_be("process"):
        image, pid = meant.named
        of_both = and_(_process.c.image.icontains(image, autoescape=True), _process.c.pid == pid)
        yield _processes(db, "Processes by name and id", of_both, _link("processes", name=image, pid=str(pid)))
    if number is None and len(text) >= 2:
        if meant.may_be("process"):
            named = or_(_process.c.image.icontains(text, autoescape=True), _process.c.command_line.icontains(text, autoescape=True))
            yield _processes(db, "Processes by name", named, _link("processes", name=text), name=text)
        if meant.may_be("internet"):
            yield _names(db, text)
        if meant.may_be("name"):
            yield _modules(db, text)
            yield _stacks(db, text)
            if meant.frame is not None:
                yield _frames(db, *meant.frame)


def _reason(db: Connection, reason: int) -> Group:
    """Aborts for a reason."""
    number = db.execute(
        select(func.count()).select_from(_abort).where(_abort.c.trace_id == THIS_TRACE, _abort.c.reason == reason)
    ).scalar_one()
    hits = (Hit(f"aborts for reason {reason}", _link("aborts", reason=str(reason)), fmt.plural(number, "abort")),) if number else ()
    return Group("Aborts", hits)


def _linked(db: Connection, text: str) -> Iterator[Group]:
    """What a link calls a socket or a process: `0xENDPOINT@NS`, `PID@NS`."""
    if "@" not in text:
        return
    try:
        endpoint = fmt.stored_address(parse_socket(text).endpoint)
        if db.execute(select(_socket.c.n).where(_socket.c.trace_id == THIS_TRACE, _socket.c.endpoint == endpoint).limit(1)).first():
            yield Group("Socket", (Hit(f"socket {text}", f"sockets/{text}"),))
    except BadLink:
        pass
    try:
        process = parse_process(text)
    except BadLink:
        return
    p = _process.c
    is_it = p.pid == process.pid if process.pid is not None else p.eprocess == fmt.stored_address(process.eprocess or 0)
    if db.execute(select(p.n).where(p.trace_id == THIS_TRACE, is_it).limit(1)).first():
        yield Group("Process", (Hit(f"process {text}", f"processes/{text}"),))


def _frames(db: Connection, module: str, offset: int) -> Group:
    """Stacks through one place of a module."""
    f = _frame.c
    rows = db.execute(
        select(_stack.c.hash)
        .where(
            _stack.c.trace_id == THIS_TRACE,
            _stack.c.n.in_(
                select(f.stack_n).where(f.trace_id == THIS_TRACE, f.module.icontains(module, autoescape=True), f.offset == offset)
            ),
        )
        .limit(_MAX)
    ).scalars()
    return Group("Stacks through this place", tuple(Hit(f"stack {found}", f"stacks/{found}") for found in rows))


def _link(path: str, **query: str) -> str:
    """A link below the trace with a query."""
    return f"{path}?{urlencode(query, safe='@:,/')}"


def _statuses(text: str) -> tuple[int, ...]:
    try:
        return parse_status(text)
    except ValueError:
        return ()


def _errors(db: Connection, statuses: tuple[int, ...], text: str | None) -> Group:
    """Failures and aborts with some statuses; `text` is a spelling of them all that lists can be filtered by."""
    rows = db.execute(
        select(_operation.c.status, func.count())
        .where(_operation.c.trace_id == THIS_TRACE, _operation.c.status.in_(statuses), _operation.c.outcome != OUTCOMES.index("completed"))
        .group_by(_operation.c.status)
        .order_by(func.count().desc(), _operation.c.status)
    ).all()
    hits = [
        Hit(fmt.status(status), _link("operations", status=f"{status & 0xFFFFFFFF:#x}"), f"on {fmt.plural(number, 'operation')}")
        for status, number in rows[:_MAX]
    ]
    aborts = db.execute(
        select(func.count()).select_from(_abort).where(_abort.c.trace_id == THIS_TRACE, _abort.c.last_error.in_(statuses))
    ).scalar_one()
    if aborts:
        hits.append(Hit("the last error before an abort", _link("aborts", status=text) if text else "aborts", fmt.plural(aborts, "abort")))
    return Group("Errors", tuple(hits), _link("errors", status=text) if text else None)


def _port(db: Connection, port: int) -> Group:
    rows = db.execute(
        select(_address.c.text).where(_address.c.trace_id == THIS_TRACE, _address.c.port == port).order_by(_address.c.n).limit(_MAX)
    ).scalars()
    hits = tuple(Hit(found, _link("sockets", address=found, unused=""), "socket address") for found in rows)
    return Group("Port", hits, _link("sockets", port=str(port), unused=""))


def _internet(db: Connection, text: str) -> Iterator[Group]:
    if not re.search(r"[.:]", text):
        return
    try:
        wanted = parse_address_range(text)
    except ValueError:
        return
    rows = db.execute(
        select(_address.c.text)
        .where(_address.c.trace_id == THIS_TRACE, _address.c.n.in_(address_numbers(wanted)))
        .order_by(_address.c.n)
        .limit(_MAX)
    ).scalars()
    yield Group(
        "Addresses",
        tuple(Hit(found, _link("sockets", address=found, unused=""), "socket address") for found in rows),
        _link("sockets", address=text, unused=""),
    )


def _names(db: Connection, text: str) -> Group:
    """Names of addresses, by the answers of name resolution."""
    hits = tuple(
        Hit(name, _link("sockets", host=name, unused=""), f"led to {fmt.plural(number, 'address', 'addresses')}")
        for name, number in named_addresses(db, text, _MAX)
    )
    return Group("Names of addresses", hits, _link("sockets", host=text, unused=""))


def _processes(db: Connection, title: str, condition: object, all_link: str, *, name: str = "") -> Group:
    """Processes that meet a condition in time order; with a name first those that are called so, then those that begin with it."""
    p = _process.c
    rank = case(
        (func.lower(p.image).in_([name.lower(), f"{name.lower()}.exe"]), 0),
        (p.image.istartswith(name, autoescape=True), 1),
        (p.image.icontains(name, autoescape=True), 2),
        else_=3,
    )
    rows = db.execute(
        select(p.pid, p.eprocess, p.start_ns, p.first_ns, p.image)
        .where(p.trace_id == THIS_TRACE, condition)  # type: ignore[arg-type] # a condition on the process table
        .order_by(*((rank,) if name else ()), p.first_ns)
        .limit(_MAX)
    )
    hits = []
    for row in rows:
        link = process_link(row.pid, row.eprocess, row.start_ns, row.first_ns)
        hits.append(
            Hit(
                f"{row.image or 'process'} {'' if row.pid is None else row.pid}".strip(),
                f"processes/{link}",
                f"from {fmt.time(row.first_ns)}",
            )
        )
    return Group(title, tuple(hits), all_link)


def _memory(db: Connection, text: str) -> Iterator[Group]:
    """Endpoints, process objects, buffers and allocations at a hex address."""
    bare = text.lower().removeprefix("0x")
    if not re.fullmatch(r"[0-9a-f]{5,16}", bare) or (text == bare and bare.isdigit()):
        return
    value = int(bare, 16)
    stored = fmt.stored_address(value)
    s = _socket.c
    rows = db.execute(
        select(s.endpoint, s.created_ns, s.first_ns, s.end)
        .where(s.trace_id == THIS_TRACE, s.endpoint == stored)
        .order_by(s.first_ns, s.n)
        .limit(_MAX)
    )
    yield Group(
        "Sockets",
        tuple(
            Hit(
                fmt.address(row.endpoint),
                f"sockets/{socket_link(row.endpoint, row.created_ns, row.first_ns)}",
                f"from {fmt.time(row.first_ns)}, {fmt.words(row.end)}",
            )
            for row in rows
        ),
    )
    yield _processes(db, "Process objects", _process.c.eprocess == stored, "processes")
    yield Group("Address", (Hit(f"everything at {value:#x}", f"address/{value:#x}", is_offer=True),))


def _is_inside(file: ColumnElement[str], text: str) -> ColumnElement[int]:
    """0 for a path whose file is called so, with or without its ending, 1 for one that has the text anywhere."""
    named = (file.iendswith(f"\\{text}{end}", autoescape=True) for end in ("", ".dll", ".exe"))
    return case((or_(func.lower(file).in_([text.lower(), f"{text.lower()}.dll", f"{text.lower()}.exe"]), *named), 0), else_=1)


def _modules(db: Connection, text: str) -> Group:
    m = _module.c
    rows = db.execute(
        select(m.file, func.count(m.process_n.distinct()), func.min(m.base))
        .where(m.trace_id == THIS_TRACE, m.file.icontains(text, autoescape=True))
        .group_by(m.file)
        .order_by(_is_inside(m.file, text), m.file)
        .limit(_MAX)
    )
    return Group(
        "Modules",
        tuple(Hit(file, f"address/{base & (1 << 64) - 1:#x}", fmt.plural(number, "process", "processes")) for file, number, base in rows),
    )


def _stacks(db: Connection, text: str) -> Group:
    by_hash = (
        select(_stack.c.hash).where(_stack.c.trace_id == THIS_TRACE, _stack.c.hash.startswith(text.lower(), autoescape=True)).limit(_MAX)
    )
    hits = [Hit(f"stack {found}", f"stacks/{found}") for found in db.execute(by_hash).scalars()]
    named = or_(_frame.c.module.icontains(text, autoescape=True), _frame.c.symbol.icontains(text, autoescape=True))
    has = db.execute(select(_frame.c.stack_n).where(_frame.c.trace_id == THIS_TRACE, named).limit(1)).first()
    if has is not None:
        hits.append(Hit(f"stacks with “{text}” in a frame", _link("stacks", frame=text)))
    return Group("Stacks", tuple(hits))
