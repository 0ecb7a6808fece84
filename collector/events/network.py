"""What the network stack itself logs of connections: the kernel's TcpIp and UdpIp events, the same by a provider of its own, and TCPIP.

In TCP events daddr is the other side and saddr this one, whichever way the data went; in UDP events they are the packet's own, so that
daddr of a datagram that arrived is this side, or the group that it was sent to. Ports and addresses are in network order. The process is
in the payload: headers are of whatever thread ran.
"""

from uuid import UUID

from collector.schema import EventSchema, Field, i16, ipv4, ipv6, pointer, port, rest, sockaddr, u16, u32, u64

__all__ = ["KERNEL_NETWORK", "NETWORK_EVENTS", "TCPIP", "TCP_CLASS", "UDP_CLASS"]

TCP_CLASS = UUID("9a280ac0-c8e0-11d1-84e2-00c04fb998a2")
"""Hook group 0x06."""
UDP_CLASS = UUID("bf3a50c5-a9c9-4988-a005-2df0b7c80f80")
"""Hook group 0x08."""
KERNEL_NETWORK = UUID("7dd42a49-5329-4832-8dfd-43d979153a88")
TCPIP = UUID("2f07e2ee-15db-40f1-90ef-9d7ba282188a")

_SEEN = "records of net.4.5.2.x64, the public test trace of perfview: sends and receives decode to their last byte; MOF class TcpIp"
_MANIFEST = "manifest of Microsoft-Windows-Kernel-Network as public dumps of Windows 10 have it"
_TCPIP_MANIFEST = "manifest of Microsoft-Windows-TCPIP as public dumps of Windows 10 have it"

_ENDS_4 = (u32("pid"), u32("size", unit="bytes"), ipv4("daddr"), ipv4("saddr"), port("dport"), port("sport"))
_ENDS_6 = (u32("pid"), u32("size", unit="bytes"), ipv6("daddr"), ipv6("saddr"), port("dport"), port("sport"))
_NUMBERS = (u32("seqnum"), pointer("connid"))
_TIMES = (u32("startime"), u32("endtime"), *_NUMBERS)
_OPTIONS = (u16("mss"), u16("sackopt"), u16("tsopt"), u16("wsopt"), u32("rcvwin"), i16("rcvwinscale"), i16("sndwinscale"), *_NUMBERS)
# Published manifests differ in the width of what follows the ports, which nothing here reads.
_REST = (rest("more"),)

# IPv4 opcode of TCP; IPv6 has 16 more.
_TCP = (
    (10, "Send", _TIMES),
    (11, "Receive", _NUMBERS),
    (12, "Connect", _OPTIONS),
    (13, "Disconnect", _NUMBERS),
    (14, "Retransmit", _NUMBERS),
    (15, "Accept", _OPTIONS),
    (16, "Reconnect", _NUMBERS),
    (18, "Copy", _NUMBERS),
)
_UDP = ((10, "Send"), (11, "Receive"))
_UDP_IDS = 32
_IPV6 = 16


def _both(number: int, name: str, tail: tuple[Field, ...]) -> tuple[tuple[int, str, tuple[Field, ...]], ...]:
    """An event and its IPv6 form."""
    return (number, name, (*_ENDS_4, *tail)), (number + _IPV6, f"{name}IPv6", (*_ENDS_6, *tail))


_CLASSIC = (
    *(
        EventSchema(TCP_CLASS, number, (2,), name, fields, _SEEN, is_classic=True)
        for opcode, what, tail in _TCP
        for number, name, fields in _both(opcode, f"TcpIp{what}", tail)
    ),
    *(
        EventSchema(UDP_CLASS, number, (2,), name, fields, _SEEN, is_classic=True)
        for opcode, what in _UDP
        for number, name, fields in _both(opcode, f"UdpIp{what}", _NUMBERS)
    ),
)

_BY_PROVIDER = (
    *(
        EventSchema(KERNEL_NETWORK, number, (0,), name, fields, _MANIFEST)
        for opcode, what, _ in _TCP
        for number, name, fields in _both(opcode, f"KernelNetworkTcp{what}", _REST)
    ),
    *(
        EventSchema(KERNEL_NETWORK, number, (0,), name, fields, _MANIFEST)
        for opcode, what in _UDP
        for number, name, fields in _both(opcode + _UDP_IDS, f"KernelNetworkUdp{what}", _REST)
    ),
)

_ADDRESSES = (
    u32("local_address_length", unit="bytes"),
    sockaddr("local_address", length_field="local_address_length"),
    u32("remote_address_length", unit="bytes"),
    sockaddr("remote_address", length_field="remote_address_length"),
)
# Two templates serve nearly all events of a connection. Newer versions of the second end with the process's start key.
_STATE = (pointer("tcb"), *_ADDRESSES, u32("new_state"), u32("rexmit_count"), *_REST)
_STATUS = (*_ADDRESSES, u32("status", enum="NTSTATUS"), u32("process_id"), u32("compartment"), pointer("tcb"), *_REST)

_RUNDOWN = (pointer("tcb"), *_ADDRESSES, u32("state"), u32("pid"), *_REST)

_OF_STATE = (
    (1002, "TcpRequestConnect"),
    (1183, "TcpConnectTcbFailedRcvdRst"),
    (1184, "TcpConnectionTerminatedRcvdRst"),
    (1185, "TcpConnectionTerminatedRcvdSyn"),
    (1186, "TcpConnectRestransmit"),
    (1187, "TcpDataTransferRestransmit"),
)
_OF_STATUS = (
    (1016, "TcpAcceptListenerRejected"),
    (1017, "TcpAcceptListenerComplete"),
    (1033, "TcpConnectTcbComplete"),
    (1034, "TcpConnectTcbFailure"),
    (1038, "TcpCloseTcbRequest"),
    (1039, "TcpAbortTcbRequest"),
    (1040, "TcpAbortTcbComplete"),
    (1043, "TcpDisconnectTcbComplete"),
    (1044, "TcpShutdownTcb"),
    (1045, "TcpConnectTcbTimeout"),
    (1046, "TcpDisconnectTcbRtoTimeout"),
    (1047, "TcpDisconnectTcbKeepaliveTimeout"),
    (1048, "TcpDisconnectTcbTimeout"),
    (1200, "TcpDisconnectTcbZeroWindowTimeout"),
    (1201, "TcpDisconnectTcbFinWait2Timeout"),
    (1468, "TcpSystemAbortTcb"),
)
_SUMMARY = (
    pointer("tcb"),
    *(u64(name) for name in ("data_bytes_out", "data_bytes_in", "data_segments_out", "data_segments_in", "segments_out", "segments_in")),
    *(u32(name) for name in ("non_recov_da", "non_recov_da_episodes", "dup_acks_in", "bytes_retrans", "timeouts")),
    *(u32(name) for name in ("spurious_rto_detections", "fast_retran", "max_ssthresh", "max_ss_cwnd", "max_ca_cwnd")),
    u32("snd_lim_trans_rwin"),
    u32("snd_lim_time_rwin"),
    u64("snd_lim_bytes_rwin"),
    u32("snd_lim_trans_cwnd"),
    u32("snd_lim_time_cwnd"),
    u64("snd_lim_bytes_cwnd"),
    u32("snd_lim_trans_snd"),
    u32("snd_lim_time_r_snd"),
    u64("snd_lim_bytes_r_snd"),
    u64("connection_time_ms", unit="ms"),
    u32("timestamps_enabled"),
    u32("rtt_us", unit="us"),
    u32("min_rtt_us", unit="us"),
    u32("max_rtt_us", unit="us"),
    u32("syn_retrans"),
    u32("congestion_algorithm"),
    u32("state"),
    *_ADDRESSES,
    *_REST,
)

_STACK = (
    *(EventSchema(TCPIP, number, (0,), name, _STATE, _TCPIP_MANIFEST) for number, name in _OF_STATE),
    *(EventSchema(TCPIP, number, (0,), name, _STATUS, _TCPIP_MANIFEST) for number, name in _OF_STATUS),
    EventSchema(
        TCPIP,
        1051,
        (0,),
        "TcpTcbStateChange",
        (u32("old_state"), u32("new_state"), u32("snd_nxt"), pointer("tcb"), *_REST),
        _TCPIP_MANIFEST,
    ),
    EventSchema(
        TCPIP, 1300, (0,), "TcpConnectionRundown", (pointer("tcb"), *_ADDRESSES, u32("state"), u32("pid"), *_REST), _TCPIP_MANIFEST
    ),
    EventSchema(TCPIP, 1477, (0,), "TcpConnectionSummary1477", _SUMMARY, _TCPIP_MANIFEST),
)

NETWORK_EVENTS: tuple[EventSchema, ...] = (*_CLASSIC, *_BY_PROVIDER, *_STACK)
