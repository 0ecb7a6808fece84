"""Builders of what the network stack logs: the kernel's events of a connection, those of its own provider, and of TCPIP."""

from ipaddress import ip_address

from tests.build.events import PID, Event, event

__all__ = ["kernel_tcp", "kernel_udp", "stack", "state_change", "summary"]

LOCAL, REMOTE = "10.0.0.5:50001", "192.0.2.10:443"
TCB = 0xFFFF_9A0C_5500_0010


def _parts(address: str) -> tuple[str, int]:
    ip, _, port = address.rpartition(":")
    return ip.strip("[]"), int(port)


def kernel_tcp(
    what: str,
    *,
    at_us: float,
    local: str = LOCAL,
    remote: str = REMOTE,
    pid: int = PID,
    size: int = 0,
    provider: str = "TcpIp",
) -> Event:
    """Send, Receive, Connect, Accept, Disconnect, Retransmit, Reconnect, Copy; `provider` TcpIp or KernelNetworkTcp."""
    (saddr, sport), (daddr, dport) = _parts(local), _parts(remote)
    form = "IPv6" if ip_address(saddr).version == 6 else ""
    return event(f"{provider}{what}{form}", at_us=at_us, pid=pid, size=size, saddr=saddr, sport=sport, daddr=daddr, dport=dport)


def kernel_udp(what: str, *, at_us: float, source: str, destination: str, pid: int = PID, size: int = 0, provider: str = "UdpIp") -> Event:
    """Send or Receive; addresses are those of the packet."""
    (saddr, sport), (daddr, dport) = _parts(source), _parts(destination)
    form = "IPv6" if ip_address(saddr).version == 6 else ""
    return event(f"{provider}{what}{form}", at_us=at_us, pid=pid, size=size, saddr=saddr, sport=sport, daddr=daddr, dport=dport)


def stack(name: str, *, at_us: float, local: str | bytes = LOCAL, remote: str | bytes = REMOTE, tcb: int = TCB, **values: int) -> Event:
    """An event of Microsoft-Windows-TCPIP that names both addresses."""
    return event(name, at_us=at_us, local_address=local, remote_address=remote, tcb=tcb).with_values(**values)


def state_change(*, at_us: float, old: int, new: int, tcb: int = TCB) -> Event:
    return event("TcpTcbStateChange", at_us=at_us, old_state=old, new_state=new, tcb=tcb)


def summary(
    *, at_us: float, local: str = LOCAL, remote: str = REMOTE, rtt_us: int = 0, min_rtt_us: int = 0, max_rtt_us: int = 0, **values: int
) -> Event:
    """What the stack counted of a connection, at its end."""
    return stack(
        "TcpConnectionSummary1477",
        at_us=at_us,
        local=local,
        remote=remote,
        rtt_us=rtt_us,
        min_rtt_us=min_rtt_us,
        max_rtt_us=max_rtt_us,
        **values,
    )
