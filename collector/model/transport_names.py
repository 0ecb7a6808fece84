"""Which events tell of connections: what each means, whose it is, and its number."""

from collections.abc import Mapping

from collector.model.transport_keys import TCP, UDP
from collector.words import TRANSPORT_SOURCES

__all__ = ["OF_KERNEL", "OF_STACK", "RECEIVES", "RETRANSMITS", "SENDS", "STACK", "STATE_CHANGE", "STATE_EVENT"]

_KERNEL, _DATAGRAMS, _NETWORK, STACK = range(len(TRANSPORT_SOURCES))

SENDS, RECEIVES = "Send", "Receive"
_LASTING = {"Connect": 12, "Disconnect": 13, "Retransmit": 14, "Accept": 15, "Reconnect": 16}
"""The kernel's own events that are kept one by one, with their opcode, which is also the id by the other provider."""
_FORMS = (("TcpIp", _KERNEL, TCP), ("UdpIp", _DATAGRAMS, UDP), ("KernelNetworkTcp", _NETWORK, TCP), ("KernelNetworkUdp", _NETWORK, UDP))
OF_STACK: Mapping[str, tuple[int, str]] = {
    "TcpRequestConnect": (1002, "connect requested"),
    "TcpConnectTcbFailedRcvdRst": (1183, "refused by a reset"),
    "TcpConnectionTerminatedRcvdRst": (1184, "reset received"),
    "TcpConnectionTerminatedRcvdSyn": (1185, "ended by a SYN"),
    "TcpConnectRestransmit": (1186, "SYN retransmitted"),
    "TcpDataTransferRestransmit": (1187, "retransmit"),
    "TcpAcceptListenerRejected": (1016, "accept rejected"),
    "TcpAcceptListenerComplete": (1017, "accept"),
    "TcpConnectTcbComplete": (1033, "connected"),
    "TcpConnectTcbFailure": (1034, "connect failed"),
    "TcpCloseTcbRequest": (1038, "close requested"),
    "TcpAbortTcbRequest": (1039, "abort requested"),
    "TcpAbortTcbComplete": (1040, "abort done"),
    "TcpDisconnectTcbComplete": (1043, "disconnect done"),
    "TcpShutdownTcb": (1044, "shut down"),
    "TcpConnectTcbTimeout": (1045, "connect timed out"),
    "TcpDisconnectTcbRtoTimeout": (1046, "retransmissions gave up"),
    "TcpDisconnectTcbKeepaliveTimeout": (1047, "keep-alives gave up"),
    "TcpDisconnectTcbTimeout": (1048, "disconnect timed out"),
    "TcpDisconnectTcbZeroWindowTimeout": (1200, "closed window timed out"),
    "TcpDisconnectTcbFinWait2Timeout": (1201, "FIN-WAIT-2 timed out"),
    "TcpConnectionRundown": (1300, "there already"),
    "TcpSystemAbortTcb": (1468, "aborted by the system"),
    "TcpConnectionSummary1477": (1477, "summary"),
}
"""Event name → its id, and a word of TRANSPORT_DEEDS."""
STATE_CHANGE, STATE_EVENT = "TcpTcbStateChange", 1051
RETRANSMITS = ("retransmit", "SYN retransmitted")
_IPV6 = 16


def _kernel_names() -> dict[str, tuple[int, int, str, int]]:
    found = {}
    for prefix, source, protocol in _FORMS:
        for what, number in {SENDS: 0, RECEIVES: 0, **(_LASTING if protocol == TCP else {})}.items():
            for form, more in (("", 0), ("IPv6", _IPV6)):
                found[f"{prefix}{what}{form}"] = (source, protocol, what if not number else what.lower(), number + more)
    return found


OF_KERNEL = _kernel_names()
"""Event name → source, protocol, what it is (SENDS, RECEIVES, or a word of TRANSPORT_DEEDS), number of the event."""
