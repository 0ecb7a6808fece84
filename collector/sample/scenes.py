"""What the sample shows, and where: for readers of the documentation and for tests."""

from dataclasses import dataclass

__all__ = ["SCENES", "Scene"]


@dataclass(frozen=True, slots=True)
class Scene:
    """One thing to see: at `at_s` seconds in a program, at a peer, listener or call site named by `where`."""

    name: str
    program: str
    at_s: float
    where: str
    shows: str


SCENES: tuple[Scene, ...] = (
    Scene(
        "browse", "shopfront.exe", 0.5, "port 443 of five sites", "connections that come and go, would-block receives, sends counted twice"
    ),
    Scene(
        "loopback", "shopfront.exe", 1.0, "127.0.0.1:49820 and 127.0.0.1:9010", "both ends of a connection, the other one in catalogd.exe"
    ),
    Scene(
        "forgotten sockets",
        "shopfront.exe",
        3.0,
        "198.51.100.33:443",
        "26 sockets never closed: the peers of 9 have finished, 17 still receive",
    ),
    Scene("reset by the peer", "shopfront.exe", 8.0, "203.0.113.21:8080", "abort 4 with a receive in flight, which fails"),
    Scene("unread data", "shopfront.exe", 11.0, "198.51.100.80:443", "closed with 1,920 bytes unread, abort 7"),
    Scene("abortive disconnect", "shopfront.exe", 14.0, "198.51.100.14:443", "abort 2, asked for by the program"),
    Scene("refused", "shopfront.exe", 16.0, "192.0.2.8:443", "connect fails after 2 s: nobody listens"),
    Scene("timeout", "shopfront.exe", 17.0, "192.0.2.9:443", "connect fails after 21 s without an answer"),
    Scene("dropped datagrams", "skyrace.exe", 18.0, "203.0.113.40:27015", "the reader stalls for 2 s with SO_RCVBUF 8192, reason 2"),
    Scene("unreachable", "shopfront.exe", 20.0, "192.0.2.10:443", "connect fails after 3 s: no route"),
    Scene("receive over a send", "nightsafe.exe", 21.0, "192.0.2.77:873", "send->recv, partial, on two sockets"),
    Scene("delivery failed", "shopfront.exe", 23.0, "192.0.2.140:443", "abort 15 two seconds after a send that succeeded"),
    Scene("too small", "skyrace.exe", 24.0, "203.0.113.40:27015", "three datagrams of 900 bytes, 256 received"),
    Scene("one buffer, two sends", "nightsafe.exe", 24.0, "192.0.2.77:873", "send->send: exact on two sockets, contained in both"),
    Scene("shut down with data", "shopfront.exe", 26.0, "192.0.2.141:443", "abort 3, 1,460 bytes never read"),
    Scene("send from a receive", "nightsafe.exe", 27.0, "192.0.2.77:873", "recv->send, contained, on one socket"),
    Scene("backlog", "catalogd.exe", 28.0, "0.0.0.0:8443", "nobody accepts for 4 s: the backlog of 8 fills, then connections are refused"),
    Scene("small sends", "skyrace.exe", 30.0, "203.0.113.11:5222", "24 sends of 28 bytes that take about 200 ms, SO_SNDBUF is 0"),
    Scene("peak", "ledger.exe", 31.0, "Report.Build", "six megabytes for a second and a half"),
    Scene("freed in flight", "nightsafe.exe", 33.0, "192.0.2.77:873", "a block of 4,096 bytes is freed and used again under a receive"),
    Scene(
        "port exhaustion",
        "portstorm.exe",
        34.0,
        "192.0.2.60:9000",
        "40 binds fail with 0xc0000209; 0xc000020a and 0xc0000043 are something else",
    ),
    Scene("overrun", "nightsafe.exe", 36.0, "192.0.2.77:873", "a receive of 4,096 bytes into a block of 3,584"),
    Scene("three buffers", "nightsafe.exe", 38.0, "192.0.2.77:873", "one send of three buffers: only the first is known"),
    Scene("posted after free", "nightsafe.exe", 39.0, "192.0.2.77:873", "a send of a block that was freed just before"),
    Scene("registered i/o", "catalogd.exe", 40.0, "192.0.2.99:4317", "sends without a buffer; a buffer is deregistered with 2 references"),
    Scene("shrunk in flight", "nightsafe.exe", 41.0, "192.0.2.77:873", "a block is made smaller under a receive"),
    Scene("stack and static data", "nightsafe.exe", 43.0, "192.0.2.77:873", "sends without a heap block behind them"),
    Scene("double free", "ledger.exe", 44.0, "Voucher.Post", "freed twice, freed through another heap, freed but never allocated"),
    Scene("killed", "portstorm.exe", 46.0, "192.0.2.60:9000", "90 connections end with the process, abort 7"),
    Scene("adapter removed", "shopfront.exe", 47.0, "203.0.113.90", "three connections abort at once, abort 19"),
    Scene("process id used again", "notes.exe", 52.0, "198.51.100.44:443", "process id 8412 is another program now"),
    Scene("leak", "ledger.exe", 0.5, "Journal.Append, StatementCache.Add", "two call sites never free: 96 and 4,096 bytes each"),
    Scene("churn", "ledger.exe", 0.5, "Parse.Row", "blocks that live for microseconds, a list that moves when it grows"),
    Scene("heap destroyed", "ledger.exe", 4.0, "Sheet.Load", "a private heap goes with twelve blocks in it"),
    Scene("holes", "skyrace.exe", 0.5, "Scene.Build", "small blocks of different lives, no leak"),
    Scene(
        "name service", "svchost.exe", 0.5, "three resolvers", "a datagram socket from before the trace, one reset by an unreachable port"
    ),
    Scene("select", "oldscan.exe", 0.5, "", "polls of a 32-bit program, heap records with pointers of four bytes"),
)
