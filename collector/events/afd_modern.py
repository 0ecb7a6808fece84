"""Winsock AFD: the socket calls 1000 to 1037 and the transport indications 3000 to 3007, the second generation.

A request is logged when it enters the driver and when it leaves it; `enter_exit` says which. `process` is the address of the kernel's
process object. `buffer` is a user address on the fast path, else a kernel address or 0.
"""

from collector.events.afd_provider import AFD
from collector.schema import EventSchema, pointer, sockaddr, u32

__all__ = ["MODERN"]

_MANIFEST = "Microsoft-Windows-Winsock-AFD manifest of Windows 10, event "

_ADDRESS = (u32("address_len", unit="bytes"), sockaddr("address", length_field="address_len"))
_REQUEST = (u32("enter_exit", enum="EnterExit"), u32("location", enum="Location"), pointer("process"), pointer("endpoint"))
_STATUS = (*_REQUEST, u32("status", enum="NTSTATUS"))
_TRANSFER = (*_REQUEST, u32("buffer_count"), pointer("buffer"), u32("buffer_length", unit="bytes"), u32("status", enum="NTSTATUS"))
_TRANSFER_TO = (*_TRANSFER, *_ADDRESS)
_CONNECTION = (*_REQUEST, pointer("buffer"), u32("buffer_length", unit="bytes"), u32("status", enum="NTSTATUS"), *_ADDRESS)
_INDICATION = (*_REQUEST, pointer("buffer"), u32("buffer_length", unit="bytes"))

MODERN: tuple[EventSchema, ...] = (
    EventSchema(
        AFD,
        1000,
        (0,),
        "AfdCreate",
        (
            *_REQUEST,
            u32("address_family", enum="AddressFamily"),
            u32("socket_type", enum="SocketType"),
            u32("protocol", enum="Protocol"),
            pointer("process_id"),
            u32("status", enum="NTSTATUS"),
        ),
        _MANIFEST + "AfdCreateOpen",
    ),
    EventSchema(AFD, 1001, (0,), "AfdClose", _STATUS, _MANIFEST + "AfdCloseClosed"),
    EventSchema(AFD, 1002, (0,), "AfdCleanup", _STATUS, _MANIFEST + "AfdCleanupFreed"),
    EventSchema(AFD, 1003, (0,), "AfdSend", _TRANSFER, _MANIFEST + "AfdSendConnected"),
    EventSchema(AFD, 1004, (0,), "AfdReceive", _TRANSFER, _MANIFEST + "AfdReceiveConnected"),
    EventSchema(AFD, 1005, (0,), "AfdSendTo", _TRANSFER, _MANIFEST + "AfdSendToConnected"),
    EventSchema(AFD, 1006, (0,), "AfdReceiveFrom", _TRANSFER, _MANIFEST + "AfdReceiveFromConnected"),
    EventSchema(AFD, 1007, (0,), "AfdSendToWithAddress", _TRANSFER_TO, _MANIFEST + "AfdSendToWithAddressConnected"),
    EventSchema(AFD, 1009, (0,), "AfdReceiveFromWithAddress", _TRANSFER_TO, _MANIFEST + "AfdReceiveFromWithAddressConnected"),
    EventSchema(AFD, 1011, (0,), "AfdSendMessage", _TRANSFER, _MANIFEST + "AfdSendMessageConnected"),
    EventSchema(AFD, 1012, (0,), "AfdReceiveMessage", _TRANSFER, _MANIFEST + "AfdReceiveMessageConnected"),
    EventSchema(AFD, 1013, (0,), "AfdSendMessageWithAddress", _TRANSFER_TO, _MANIFEST + "AfdSendMessageWithAddressConnected"),
    EventSchema(AFD, 1015, (0,), "AfdReceiveMessageWithAddress", _TRANSFER_TO, _MANIFEST + "AfdReceiveMessageWithAddressConnected"),
    EventSchema(AFD, 1017, (0,), "AfdConnect", _STATUS, _MANIFEST + "AfdConnectConnected"),
    EventSchema(AFD, 1018, (0,), "AfdConnectWithAddress", _CONNECTION, _MANIFEST + "AfdConnectWithAddressConnected"),
    EventSchema(AFD, 1020, (0,), "AfdConnectEx", _STATUS, _MANIFEST + "AfdConnectExConnected"),
    EventSchema(AFD, 1021, (0,), "AfdConnectExWithAddress", _CONNECTION, _MANIFEST + "AfdConnectExWithAddressConnected"),
    EventSchema(AFD, 1023, (0,), "AfdAccept", _STATUS, _MANIFEST + "AfdAcceptConnected"),
    EventSchema(
        AFD,
        1024,
        (0,),
        "AfdAcceptWithAddress",
        (*_CONNECTION, pointer("accept_endpoint"), u32("current_backlog")),
        _MANIFEST + "AfdAcceptWithAddressConnected",
    ),
    EventSchema(AFD, 1026, (0,), "AfdAcceptEx", _STATUS, _MANIFEST + "AfdAcceptExConnected"),
    EventSchema(
        AFD,
        1027,
        (0,),
        "AfdAcceptExWithAddress",
        (*_CONNECTION, pointer("accept_endpoint"), u32("current_backlog")),
        _MANIFEST + "AfdAcceptExWithAddressConnected",
    ),
    EventSchema(AFD, 1029, (0,), "AfdBind", _STATUS, _MANIFEST + "AfdBindConnected"),
    EventSchema(AFD, 1030, (0,), "AfdBindWithAddress", (*_STATUS, *_ADDRESS), _MANIFEST + "AfdBindWithAddressConnected"),
    EventSchema(AFD, 1032, (0,), "AfdAbort", (*_REQUEST, u32("reason", enum="AbortReason")), _MANIFEST + "AfdAbortAborted"),
    EventSchema(
        AFD,
        1033,
        (0,),
        "AfdDatagramDropWithAddress",
        (*_INDICATION, *_ADDRESS, u32("reason", enum="DropReason")),
        _MANIFEST + "AfdDatagramDropWithAddressConnected",
    ),
    EventSchema(
        AFD,
        1035,
        (0,),
        "AfdOption",
        (*_REQUEST, u32("option", enum="SocketOption"), u32("value"), u32("status", enum="NTSTATUS")),
        _MANIFEST + "AfdOption",
    ),
    EventSchema(AFD, 1036, (0,), "AfdWaitForListen", _STATUS, _MANIFEST + "AfdWaitForListen"),
    EventSchema(AFD, 1037, (0,), "AfdListen", (*_REQUEST, u32("backlog"), u32("status", enum="NTSTATUS")), _MANIFEST + "AfdListen"),
    EventSchema(AFD, 3000, (0,), "AfdConnectIndication", _STATUS, _MANIFEST + "AfdConnectIndication"),
    EventSchema(
        AFD,
        3001,
        (0,),
        "AfdConnectIndicationWithAddress",
        (*_STATUS, *_ADDRESS, u32("current_backlog")),
        _MANIFEST + "AfdConnectIndicationWithAddress",
    ),
    EventSchema(AFD, 3003, (0,), "AfdDataIndication", _INDICATION, _MANIFEST + "AfdDataIndication"),
    EventSchema(AFD, 3004, (0,), "AfdDataIndicationWithAddress", (*_INDICATION, *_ADDRESS), _MANIFEST + "AfdDataIndicationWithAddress"),
    EventSchema(AFD, 3006, (0,), "AfdDisconnect", _STATUS, _MANIFEST + "AfdDisconnectDisconnected"),
    EventSchema(AFD, 3007, (0,), "AfdSendBackLog", (*_REQUEST, u32("send_backlog", unit="bytes")), _MANIFEST + "AfdSendBackLog"),
)
