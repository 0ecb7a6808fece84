"""Winsock AFD: the publicly documented events 1 to 41, the first generation.

Completions carry no status, failures no buffer. Addresses are bare IPv4 or IPv6 addresses with a port, in network order.
`process` is the address of the kernel's process object, not a process id.
"""

from collector.events.afd_provider import AFD
from collector.schema import EventSchema, bool32, i32, ipv4, ipv6, pointer, port, u32

__all__ = ["DOCUMENTED"]

# The manifest has address_family between endpoint and socket_type of event 1, which the public description leaves out; its lists of
# fields for events 25 and 28 are longer than the manifest's.
_MANIFEST = "Microsoft-Windows-Winsock-AFD manifest of Windows 10, and the provider's public description"

_SOCKET = (pointer("process"), pointer("endpoint"))
_FAILURE = (*_SOCKET, u32("error", enum="NTSTATUS"))
_COMPLETION = (*_SOCKET, pointer("buffer"), u32("buffer_length", unit="bytes"))
# fast_path is a BOOL of 4 bytes. Some decoders read one byte, so the size of these payloads is checked exactly.
_POST = (*_SOCKET, bool32("fast_path"), i32("buffer_count"), pointer("buffer"), u32("buffer_length", unit="bytes"))

DOCUMENTED: tuple[EventSchema, ...] = (
    EventSchema(
        AFD,
        1,
        (0,),
        "SocketCreate",
        (
            *_SOCKET,
            u32("address_family", enum="AddressFamily"),
            u32("socket_type", enum="SocketType"),
            u32("protocol", enum="Protocol"),
            pointer("user_mode_pid"),
        ),
        _MANIFEST,
    ),
    EventSchema(AFD, 2, (0,), "SocketBindV4", (*_SOCKET, ipv4("address"), port("port"), u32("status", enum="NTSTATUS")), _MANIFEST),
    EventSchema(AFD, 3, (0,), "SocketBindV6", (*_SOCKET, ipv6("address"), port("port"), u32("status", enum="NTSTATUS")), _MANIFEST),
    EventSchema(AFD, 4, (0,), "SocketConnectV4", (*_SOCKET, ipv4("address"), port("port")), _MANIFEST),
    EventSchema(AFD, 5, (0,), "SocketConnectV6", (*_SOCKET, ipv6("address"), port("port")), _MANIFEST),
    EventSchema(AFD, 6, (0,), "ConnectCompleted", _FAILURE, _MANIFEST),
    EventSchema(AFD, 7, (0,), "AfdInitiatedAbort", (*_SOCKET, i32("reason", enum="AbortReason")), _MANIFEST),
    EventSchema(AFD, 8, (0,), "TransportInitiatedAbort", (*_SOCKET, i32("reason", enum="AbortReason")), _MANIFEST),
    EventSchema(AFD, 9, (0,), "SendFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 10, (0,), "SendMsgFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 11, (0,), "RecvFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 12, (0,), "RecvFromFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 13, (0,), "SocketClose", _FAILURE, _MANIFEST),
    EventSchema(AFD, 14, (0,), "SocketCleanup", _FAILURE, _MANIFEST),
    EventSchema(AFD, 15, (0,), "SocketAcceptV4", (*_SOCKET, ipv4("address"), port("port"), u32("status", enum="NTSTATUS")), _MANIFEST),
    EventSchema(AFD, 16, (0,), "SocketAcceptV6", (*_SOCKET, ipv6("address"), port("port"), u32("status", enum="NTSTATUS")), _MANIFEST),
    EventSchema(AFD, 17, (0,), "AcceptFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 18, (0,), "SendPosted", _POST, _MANIFEST, is_exact=True),
    EventSchema(AFD, 19, (0,), "RecvPosted", _POST, _MANIFEST, is_exact=True),
    EventSchema(AFD, 20, (0,), "RecvFromPosted", _POST, _MANIFEST, is_exact=True),
    EventSchema(AFD, 21, (0,), "SendToPostedV4", (*_POST, ipv4("address"), port("port")), _MANIFEST, is_exact=True),
    EventSchema(AFD, 22, (0,), "SendToPostedV6", (*_POST, ipv6("address"), port("port")), _MANIFEST, is_exact=True),
    EventSchema(AFD, 23, (0,), "RecvCompleted", _COMPLETION, _MANIFEST),
    EventSchema(AFD, 24, (0,), "SendCompleted", _COMPLETION, _MANIFEST),
    EventSchema(AFD, 25, (0,), "SendMsgCompleted", _COMPLETION, _MANIFEST),
    EventSchema(
        AFD,
        26,
        (0,),
        "RecvFromCompletedV4",
        (*_SOCKET, i32("buffer_count"), pointer("buffer"), u32("buffer_length", unit="bytes"), ipv4("address"), port("port")),
        _MANIFEST,
    ),
    EventSchema(
        AFD,
        27,
        (0,),
        "RecvFromCompletedV6",
        (*_SOCKET, i32("buffer_count"), pointer("buffer"), u32("buffer_length", unit="bytes"), ipv6("address"), port("port")),
        _MANIFEST,
    ),
    EventSchema(AFD, 28, (0,), "SendToCompleted", _COMPLETION, _MANIFEST),
    EventSchema(AFD, 29, (0,), "SocketOption", (*_SOCKET, u32("option", enum="SocketOption"), u32("value")), _MANIFEST),
    EventSchema(AFD, 30, (0,), "SelectPosted", (pointer("process"), i32("handle_count"), i32("timeout")), _MANIFEST),
    EventSchema(AFD, 31, (0,), "SelectCompleted", _FAILURE, _MANIFEST),
    EventSchema(AFD, 32, (0,), "EventSelect", (*_SOCKET, u32("event_mask", enum="EventMask")), _MANIFEST),
    EventSchema(
        AFD,
        33,
        (0,),
        "DatagramDroppedV4",
        (*_SOCKET, i32("packet_size", unit="bytes"), ipv4("address"), port("port"), i32("reason", enum="DropReason")),
        _MANIFEST,
    ),
    EventSchema(
        AFD,
        34,
        (0,),
        "DatagramDroppedV6",
        (*_SOCKET, i32("packet_size", unit="bytes"), ipv6("address"), port("port"), i32("reason", enum="DropReason")),
        _MANIFEST,
    ),
    EventSchema(
        AFD, 35, (0,), "ConnectIndicatedV4", (pointer("process"), pointer("listen_endpoint"), ipv4("address"), port("port")), _MANIFEST
    ),
    EventSchema(
        AFD, 36, (0,), "ConnectIndicatedV6", (pointer("process"), pointer("listen_endpoint"), ipv6("address"), port("port")), _MANIFEST
    ),
    EventSchema(AFD, 37, (0,), "DataIndicated", (*_SOCKET, i32("bytes_indicated", unit="bytes")), _MANIFEST),
    EventSchema(
        AFD, 38, (0,), "DataIndicatedFromV4", (*_SOCKET, ipv4("address"), port("port"), i32("bytes_indicated", unit="bytes")), _MANIFEST
    ),
    EventSchema(
        AFD, 39, (0,), "DataIndicatedFromV6", (*_SOCKET, ipv6("address"), port("port"), i32("bytes_indicated", unit="bytes")), _MANIFEST
    ),
    EventSchema(AFD, 40, (0,), "BindFailed", _FAILURE, _MANIFEST),
    EventSchema(AFD, 41, (0,), "DisconnectIndicated", _SOCKET, _MANIFEST),
)
