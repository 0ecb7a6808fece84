"""NTSTATUS values, and the Winsock and Win32 errors that programs see in their place.

Names and values are those of the public system headers. The Winsock error of a status is what a public re-implementation of Winsock, tested
against Windows, reports for an overlapped operation; the Win32 error is what a completion port reports.
"""

import re
from dataclasses import dataclass

__all__ = [
    "STATUSES",
    "WIN32_ERRORS",
    "WINSOCK_ERRORS",
    "Status",
    "WinsockError",
    "is_error",
    "is_warning",
    "is_would_block",
    "meaning_of",
    "name_of",
    "parse_status",
    "win32_of",
    "winsock_of",
    "wsa_of",
]

_WSAEINVAL = 10022
_WSAEWOULDBLOCK = 10035
_FROM_WIN32 = 0xC007  # top half of a status that carries a Win32 or Winsock error in its lower half
_HRESULT_FROM_WIN32 = 0x8007
_MASK = 0xFFFFFFFF


@dataclass(frozen=True, slots=True)
class Status:
    """One NTSTATUS. `winsock` and `win32` are error numbers, None where a program sees no error or none is known."""

    value: int
    name: str
    winsock: int | None
    win32: int | None
    meaning: str


@dataclass(frozen=True, slots=True)
class WinsockError:
    """One error number of Winsock, as WSAGetLastError gives it."""

    number: int
    name: str
    meaning: str


def name_of(status: int) -> str | None:
    """Name of a status, None for one that we do not know."""
    known = STATUSES.get(status & _MASK)
    return None if known is None else known.name


def meaning_of(status: int) -> str | None:
    """What a status says, in a sentence; None for one that we do not know."""
    known = STATUSES.get(status & _MASK)
    return None if known is None else known.meaning


def winsock_of(status: int) -> WinsockError | None:
    """The Winsock error that a program gets for a status, None where it gets none or we do not know its name.

    An error status that is not in the table is reported as WSAEINVAL, as Winsock does with what it does not know either.
    """
    number = wsa_of(status)
    return None if number is None else WINSOCK_ERRORS.get(number)


def wsa_of(status: int) -> int | None:
    """As `winsock_of`, the number alone."""
    status &= _MASK
    known = STATUSES.get(status)
    if known is not None:
        return known.winsock
    if status >> 16 == _FROM_WIN32:
        return status & 0xFFFF
    return _WSAEINVAL if is_error(status) else None


def win32_of(status: int) -> tuple[str, int] | None:
    """Name and number of the Win32 error that a completion port reports for a status, None where that is not known."""
    known = STATUSES.get(status & _MASK)
    return None if known is None or known.win32 is None else (WIN32_ERRORS[known.win32], known.win32)


def is_error(status: int) -> bool:
    """Whether the top two bits are 11: the request failed, and no bytes count."""
    return (status & _MASK) >> 30 == 3


def is_warning(status: int) -> bool:
    """Whether the top two bits are 10: something is amiss, but the bytes count."""
    return (status & _MASK) >> 30 == 2


def is_would_block(status: int) -> bool:
    """Whether a non-blocking socket said "not now", which is an ordinary answer."""
    known = STATUSES.get(status & _MASK)
    return known is not None and known.winsock == _WSAEWOULDBLOCK


def parse_status(text: str) -> tuple[int, ...]:
    """All statuses that a user may mean by a text, ascending; empty for one that is no status.

    Understood are names (`STATUS_CONNECTION_RESET`, `WSAECONNRESET`, `ERROR_NETNAME_DELETED`), numbers of Winsock and Win32 errors
    (`10054`, `64`), statuses in hex (`0xC000020D`, `c000020d`) or decimal, signed or not, and HRESULTs of Win32 errors (`0x80072746`).
    """
    word = text.strip().upper()
    if word in _BY_NAME:
        return _BY_NAME[word]
    if re.fullmatch(r"0X[0-9A-F]{1,8}|[0-9A-F]{8}", word):
        return _of_number(int(word, 16))
    return _of_number(int(word)) if re.fullmatch(r"-?[0-9]{1,10}", word) else ()


def _of_number(number: int) -> tuple[int, ...]:
    """A number is an error number where it is small enough, else the status itself."""
    if number == 0:
        return (0,)
    if 0 < number <= 0xFFFF:
        return _BY_ERROR.get(number) or ((number,) if number in STATUSES else ())
    status = number & _MASK
    if status >> 16 == _HRESULT_FROM_WIN32:
        return _BY_ERROR.get(status & 0xFFFF, ())
    return (status,) if -(1 << 31) <= number <= _MASK else ()


_STATUSES = (
    Status(0x00000000, "STATUS_SUCCESS", None, 0, "It worked."),
    Status(0x00000102, "STATUS_TIMEOUT", 10060, None, "A wait reached its limit; counts as success by its top bits."),
    Status(
        0x00000103,
        "STATUS_PENDING",
        997,
        997,
        "Not finished yet, the result follows. This provider rather logs success when a request will pend.",
    ),
    Status(0x4000000F, "STATUS_RECEIVE_PARTIAL", None, None, "A piece of a message arrived, more of it is to come."),
    Status(0x40000010, "STATUS_RECEIVE_EXPEDITED", None, None, "Urgent (out-of-band) data arrived."),
    Status(0x40000011, "STATUS_RECEIVE_PARTIAL_EXPEDITED", None, None, "A piece of urgent (out-of-band) data arrived."),
    Status(
        0x80000005,
        "STATUS_BUFFER_OVERFLOW",
        10040,
        234,
        "The buffer was too small for the datagram: what fitted was delivered and counts, the remainder is gone. A warning only.",
    ),
    Status(0xC0000001, "STATUS_UNSUCCESSFUL", 10022, 31, "It failed, and nothing says why."),
    Status(0xC0000002, "STATUS_NOT_IMPLEMENTED", 10045, 1, "The transport has no such function."),
    Status(0xC0000005, "STATUS_ACCESS_VIOLATION", 10014, 998, "A buffer, an address or a length lies in memory that cannot be used."),
    Status(0xC0000007, "STATUS_PAGEFILE_QUOTA", 10055, 1454, "The process used up its share of the paging file."),
    Status(0xC0000008, "STATUS_INVALID_HANDLE", 10038, 6, "There is no socket behind the handle: it was closed before, perhaps twice."),
    Status(
        0xC000000D,
        "STATUS_INVALID_PARAMETER",
        10022,
        87,
        "An argument is wrong, or the socket is not in a state for the call (a second connect, not bound).",
    ),
    Status(0xC000000E, "STATUS_NO_SUCH_DEVICE", 10050, 2, "The transport device is missing."),
    Status(0xC000000F, "STATUS_NO_SUCH_FILE", 10050, 2, "The transport device cannot be found."),
    Status(0xC0000010, "STATUS_INVALID_DEVICE_REQUEST", 10022, 1, "A socket of this kind does not know the request."),
    Status(0xC0000017, "STATUS_NO_MEMORY", 10055, 8, "No memory was left."),
    Status(0xC0000018, "STATUS_CONFLICTING_ADDRESSES", 10055, 487, "Two address ranges overlap."),
    Status(
        0xC0000022,
        "STATUS_ACCESS_DENIED",
        10013,
        5,
        "Forbidden: the port is reserved or exclusively held, a firewall said no, or a right is lacking.",
    ),
    Status(0xC0000023, "STATUS_BUFFER_TOO_SMALL", 10014, 122, "The room given for an address does not suffice."),
    Status(0xC0000024, "STATUS_OBJECT_TYPE_MISMATCH", 10038, 6, "The handle belongs to another kind of object."),
    Status(0xC0000034, "STATUS_OBJECT_NAME_NOT_FOUND", 10050, 2, "No transport device has that name."),
    Status(0xC000003A, "STATUS_OBJECT_PATH_NOT_FOUND", 10050, 3, "The path to the transport device leads nowhere."),
    Status(
        0xC0000043, "STATUS_SHARING_VIOLATION", 10048, 32, "The port belongs to another socket; what a second bind of a port normally gets."
    ),
    Status(0xC0000044, "STATUS_QUOTA_EXCEEDED", 10055, 1816, "The process reached one of its memory quotas."),
    Status(0xC0000097, "STATUS_TOO_MANY_PAGING_FILES", 10055, 8, "A resource of the system is used up."),
    Status(0xC000009A, "STATUS_INSUFFICIENT_RESOURCES", 10055, 1450, "The kernel lacks a resource, mostly non-paged pool."),
    Status(0xC00000A1, "STATUS_WORKING_SET_QUOTA", 10055, 1453, "Pending I/O of the process has locked as much memory as it may."),
    Status(
        0xC00000A3,
        "STATUS_DEVICE_NOT_READY",
        10035,
        21,
        "A non-blocking socket has nothing to give or no room right now: an ordinary answer, not a failure.",
    ),
    Status(0xC00000B0, "STATUS_PIPE_DISCONNECTED", 10058, 233, "The socket was shut down in that direction."),
    Status(
        0xC00000B5, "STATUS_IO_TIMEOUT", 10060, 121, "The other side stayed silent: a connect without answer, or data never acknowledged."
    ),
    Status(0xC00000BB, "STATUS_NOT_SUPPORTED", 10045, 50, "This socket cannot do that, such as urgent data over UDP."),
    Status(0xC00000BC, "STATUS_REMOTE_NOT_LISTENING", 10061, 51, "The address has no listener."),
    Status(0xC00000BE, "STATUS_BAD_NETWORK_PATH", 10051, 53, "The network cannot be reached by any path."),
    Status(0xC00000BF, "STATUS_NETWORK_BUSY", 10050, 54, "The network has no capacity at the moment."),
    Status(0xC00000C3, "STATUS_INVALID_NETWORK_RESPONSE", 10050, 58, "What came back makes no sense."),
    Status(0xC00000C4, "STATUS_UNEXPECTED_NETWORK_ERROR", 10050, 59, "The network failed in a way that nobody foresaw."),
    Status(0xC00000C9, "STATUS_NETWORK_NAME_DELETED", 10022, 64, "The connection went away below the request."),
    Status(0xC00000D0, "STATUS_REQUEST_NOT_ACCEPTED", 10035, 71, "The request is refused for now."),
    Status(0xC000010A, "STATUS_PROCESS_IS_TERMINATING", 10022, 5, "The process is on its way out."),
    Status(
        0xC0000120,
        "STATUS_CANCELLED",
        995,
        995,
        "Given up before the end: by closing the socket, by cancelling, or with the thread. The network is not to blame.",
    ),
    Status(0xC0000128, "STATUS_FILE_CLOSED", 10022, 6, "The socket had been closed before."),
    Status(0xC000012D, "STATUS_COMMITMENT_LIMIT", 10055, 1455, "The system cannot commit more memory."),
    Status(0xC000013B, "STATUS_LOCAL_DISCONNECT", 10053, 64, "The connection was ended from here."),
    Status(0xC000013C, "STATUS_REMOTE_DISCONNECT", 10054, 64, "The connection was ended from there."),
    Status(0xC000013D, "STATUS_REMOTE_RESOURCES", 10055, 51, "The peer has run out of resources."),
    Status(0xC000013E, "STATUS_LINK_FAILED", 10054, 59, "The link broke."),
    Status(0xC000013F, "STATUS_LINK_TIMEOUT", 10060, 59, "The link did not answer in time."),
    Status(0xC0000140, "STATUS_INVALID_CONNECTION", 10057, 59, "The socket has no connection."),
    Status(0xC0000141, "STATUS_INVALID_ADDRESS", 10049, 59, "That address is of no use here."),
    Status(0xC0000184, "STATUS_INVALID_DEVICE_STATE", 10022, 22, "The request does not fit the state of the socket."),
    Status(0xC0000206, "STATUS_INVALID_BUFFER_SIZE", 10040, 1784, "The datagram exceeds what the transport sends in one piece."),
    Status(
        0xC0000207,
        "STATUS_INVALID_ADDRESS_COMPONENT",
        10049,
        1214,
        "The address is wrong in part; mostly no interface has this local address.",
    ),
    Status(0xC0000208, "STATUS_INVALID_ADDRESS_WILDCARD", 10022, 1214, "An address must be named here, not left open."),
    Status(0xC0000209, "STATUS_TOO_MANY_ADDRESSES", 10055, 68, "All dynamic ports are taken: the ports are exhausted."),
    Status(
        0xC000020A,
        "STATUS_ADDRESS_ALREADY_EXISTS",
        10048,
        52,
        "The address, or both ends of the connection, are taken, perhaps by one in TIME_WAIT.",
    ),
    Status(0xC000020B, "STATUS_ADDRESS_CLOSED", 10022, 64, "The local address has been closed."),
    Status(0xC000020C, "STATUS_CONNECTION_DISCONNECTED", 10054, 64, "The connection no longer exists."),
    Status(
        0xC000020D,
        "STATUS_CONNECTION_RESET",
        10054,
        64,
        'The peer reset the connection. On UDP, an earlier datagram was answered with "port unreachable".',
    ),
    Status(0xC000020E, "STATUS_TOO_MANY_NODES", 10022, 68, "The transport cannot take more peers."),
    Status(0xC000020F, "STATUS_TRANSACTION_ABORTED", 10053, 59, "The request was abandoned."),
    Status(0xC0000210, "STATUS_TRANSACTION_TIMED_OUT", 10022, 59, "The request exceeded its time."),
    Status(0xC000021B, "STATUS_DATA_NOT_ACCEPTED", 10022, None, "Data was offered inside the driver and not taken; not seen by programs."),
    Status(0xC0000225, "STATUS_NOT_FOUND", 10022, 1168, "There is no such entry, or nothing to cancel."),
    Status(
        0xC0000236,
        "STATUS_CONNECTION_REFUSED",
        10061,
        1225,
        "The peer turned the connection down: its port has no listener, or a firewall answers.",
    ),
    Status(0xC0000237, "STATUS_GRACEFUL_DISCONNECT", 10101, 1226, "The peer closed the connection in good order."),
    Status(0xC0000238, "STATUS_ADDRESS_ALREADY_ASSOCIATED", 10022, 1227, "A local address has been given to the connection before."),
    Status(0xC0000239, "STATUS_ADDRESS_NOT_ASSOCIATED", 10022, 1228, "No local address has been given to the socket."),
    Status(0xC000023A, "STATUS_CONNECTION_INVALID", 10022, 1229, "No connection of that kind exists."),
    Status(0xC000023B, "STATUS_CONNECTION_ACTIVE", 10056, 1230, "The socket has a connection already."),
    Status(0xC000023C, "STATUS_NETWORK_UNREACHABLE", 10051, 1231, "No route leads to that network."),
    Status(0xC000023D, "STATUS_HOST_UNREACHABLE", 10065, 1232, "No way leads to that host."),
    Status(0xC000023E, "STATUS_PROTOCOL_UNREACHABLE", 10051, 1233, "The protocol is not spoken over there."),
    Status(0xC000023F, "STATUS_PORT_UNREACHABLE", 10054, 1234, "The UDP port over there has no reader."),
    Status(0xC0000240, "STATUS_REQUEST_ABORTED", 10004, 1235, "The request was broken off."),
    Status(
        0xC0000241, "STATUS_CONNECTION_ABORTED", 10053, 1236, "The connection was ended on this machine: aborted here, or TCP gave it up."
    ),
    Status(0xC0000246, "STATUS_CONNECTION_COUNT_LIMIT", 10022, 1238, "No more connections are allowed."),
    Status(0xC0000350, "STATUS_HOST_DOWN", 10064, 1256, "The host does not answer when its hardware address is asked for."),
    Status(0xC000A012, "STATUS_HOPLIMIT_EXCEEDED", 10022, None, "A packet met more routers than it was allowed to."),
    Status(0xC000A013, "STATUS_PROTOCOL_NOT_SUPPORTED", 10022, None, "No protocol has this family and type."),
)

_WINSOCK_ERRORS = (
    WinsockError(6, "WSA_INVALID_HANDLE", "The handle of the event object is wrong."),
    WinsockError(8, "WSA_NOT_ENOUGH_MEMORY", "No memory was left."),
    WinsockError(87, "WSA_INVALID_PARAMETER", "An argument is wrong."),
    WinsockError(995, "WSA_OPERATION_ABORTED", "The overlapped operation was given up, mostly because its socket closed."),
    WinsockError(996, "WSA_IO_INCOMPLETE", "The overlapped operation is still running."),
    WinsockError(997, "WSA_IO_PENDING", "The overlapped operation has begun, its result follows."),
    WinsockError(10004, "WSAEINTR", "A waiting call was broken off."),
    WinsockError(10009, "WSAEBADF", "No descriptor of that number."),
    WinsockError(10013, "WSAEACCES", "Forbidden: reserved or exclusive port, firewall, or a broadcast that was not allowed."),
    WinsockError(10014, "WSAEFAULT", "A pointer leads nowhere, or its room is too small."),
    WinsockError(10022, "WSAEINVAL", "An argument is wrong, or the socket is in the wrong state."),
    WinsockError(10024, "WSAEMFILE", "The process may open no more sockets."),
    WinsockError(10035, "WSAEWOULDBLOCK", "Cannot be done at once on a non-blocking socket; an ordinary answer."),
    WinsockError(10036, "WSAEINPROGRESS", "Another call that waits is under way."),
    WinsockError(10037, "WSAEALREADY", "The socket is busy with the same kind of operation."),
    WinsockError(10038, "WSAENOTSOCK", "No socket is behind the handle."),
    WinsockError(10039, "WSAEDESTADDRREQ", "The call must say where to."),
    WinsockError(10040, "WSAEMSGSIZE", "The datagram does not fit into the buffer or onto the network."),
    WinsockError(10041, "WSAEPROTOTYPE", "This protocol is not for sockets of this type."),
    WinsockError(10042, "WSAENOPROTOOPT", "The option is unknown here."),
    WinsockError(10043, "WSAEPROTONOSUPPORT", "The protocol is not installed."),
    WinsockError(10044, "WSAESOCKTNOSUPPORT", "The family has no sockets of this type."),
    WinsockError(10045, "WSAEOPNOTSUPP", "The socket cannot do that."),
    WinsockError(10046, "WSAEPFNOSUPPORT", "The protocol family is not installed."),
    WinsockError(10047, "WSAEAFNOSUPPORT", "The address is of another family than the protocol."),
    WinsockError(10048, "WSAEADDRINUSE", "The address or port is taken."),
    WinsockError(10049, "WSAEADDRNOTAVAIL", "The address is not one of this machine, or the target has port 0."),
    WinsockError(10050, "WSAENETDOWN", "The network does not work."),
    WinsockError(10051, "WSAENETUNREACH", "No route leads to the network."),
    WinsockError(10052, "WSAENETRESET", "The connection broke: keep-alive found it dead, or its time was over."),
    WinsockError(10053, "WSAECONNABORTED", "This machine aborted the connection."),
    WinsockError(10054, "WSAECONNRESET", "The peer reset the connection; on UDP its port has no reader."),
    WinsockError(10055, "WSAENOBUFS", "Buffers or ports are used up."),
    WinsockError(10056, "WSAEISCONN", "The socket has a connection already."),
    WinsockError(10057, "WSAENOTCONN", "The socket has no connection, or no target was named."),
    WinsockError(10058, "WSAESHUTDOWN", "The socket was shut down in that direction."),
    WinsockError(10059, "WSAETOOMANYREFS", "An object is referred to too often."),
    WinsockError(10060, "WSAETIMEDOUT", "The peer did not answer in time."),
    WinsockError(10061, "WSAECONNREFUSED", "The address has no listener."),
    WinsockError(10062, "WSAELOOP", "The name refers to itself."),
    WinsockError(10063, "WSAENAMETOOLONG", "The name exceeds the limit."),
    WinsockError(10064, "WSAEHOSTDOWN", "The host is off."),
    WinsockError(10065, "WSAEHOSTUNREACH", "No route leads to the host."),
    WinsockError(10066, "WSAENOTEMPTY", "A directory is not empty; sockets do not use this."),
    WinsockError(10067, "WSAEPROCLIM", "Winsock serves no more processes."),
    WinsockError(10068, "WSAEUSERS", "The quota of the user is exceeded."),
    WinsockError(10069, "WSAEDQUOT", "The disk quota is exceeded."),
    WinsockError(10070, "WSAESTALE", "The handle is outdated."),
    WinsockError(10071, "WSAEREMOTE", "The item is on another machine."),
    WinsockError(10091, "WSASYSNOTREADY", "Networking has not started."),
    WinsockError(10092, "WSAVERNOTSUPPORTED", "This version of Winsock is not there."),
    WinsockError(10093, "WSANOTINITIALISED", "The program has not called WSAStartup, or has called WSACleanup."),
    WinsockError(10101, "WSAEDISCON", "The peer closed in good order."),
    WinsockError(10102, "WSAENOMORE", "The list is at its end (old form)."),
    WinsockError(10103, "WSAECANCELLED", "The call was cancelled (old form)."),
    WinsockError(10104, "WSAEINVALIDPROCTABLE", "The functions of a service provider are wrong."),
    WinsockError(10105, "WSAEINVALIDPROVIDER", "The service provider is wrong."),
    WinsockError(10106, "WSAEPROVIDERFAILEDINIT", "A service provider did not start."),
    WinsockError(10107, "WSASYSCALLFAILURE", "A system call failed that should not."),
    WinsockError(10108, "WSASERVICE_NOT_FOUND", "No such service."),
    WinsockError(10109, "WSATYPE_NOT_FOUND", "No such class."),
    WinsockError(10110, "WSA_E_NO_MORE", "The list is at its end."),
    WinsockError(10111, "WSA_E_CANCELLED", "The call was cancelled."),
    WinsockError(10112, "WSAEREFUSED", "The query was turned down."),
    WinsockError(11001, "WSAHOST_NOT_FOUND", "No host of that name."),
    WinsockError(11002, "WSATRY_AGAIN", "The name server gave no answer this time."),
    WinsockError(11003, "WSANO_RECOVERY", "The name server failed for good."),
    WinsockError(11004, "WSANO_DATA", "The name has no record of this kind."),
    WinsockError(11005, "WSA_QOS_RECEIVERS", "Quality of service: a reservation came in."),
    WinsockError(11006, "WSA_QOS_SENDERS", "Quality of service: a path came in."),
    WinsockError(11007, "WSA_QOS_NO_SENDERS", "Quality of service: nobody sends."),
    WinsockError(11008, "WSA_QOS_NO_RECEIVERS", "Quality of service: nobody receives."),
    WinsockError(11009, "WSA_QOS_REQUEST_CONFIRMED", "Quality of service: the reservation stands."),
    WinsockError(11010, "WSA_QOS_ADMISSION_FAILURE", "Quality of service: not admitted for lack of resources."),
    WinsockError(11011, "WSA_QOS_POLICY_FAILURE", "Quality of service: a policy forbids it."),
    WinsockError(11012, "WSA_QOS_BAD_STYLE", "Quality of service: the style is unknown or contradicts another."),
    WinsockError(11013, "WSA_QOS_BAD_OBJECT", "Quality of service: a filter or provider buffer is wrong."),
    WinsockError(11014, "WSA_QOS_TRAFFIC_CTRL_ERROR", "Quality of service: traffic control failed."),
    WinsockError(11015, "WSA_QOS_GENERIC_ERROR", "Quality of service: a failure without a name."),
    WinsockError(11016, "WSA_QOS_ESERVICETYPE", "Quality of service: the flow asks for a wrong service type."),
    WinsockError(11017, "WSA_QOS_EFLOWSPEC", "Quality of service: the flow specification is wrong."),
    WinsockError(11018, "WSA_QOS_EPROVSPECBUF", "Quality of service: the provider buffer is wrong."),
    WinsockError(11019, "WSA_QOS_EFILTERSTYLE", "Quality of service: the filter style is wrong."),
    WinsockError(11020, "WSA_QOS_EFILTERTYPE", "Quality of service: the filter type is wrong."),
    WinsockError(11021, "WSA_QOS_EFILTERCOUNT", "Quality of service: the number of filters is wrong."),
    WinsockError(11022, "WSA_QOS_EOBJLENGTH", "Quality of service: an object has a wrong length."),
    WinsockError(11023, "WSA_QOS_EFLOWCOUNT", "Quality of service: the number of flows is wrong."),
    WinsockError(11024, "WSA_QOS_EUNKNOWNPSOBJ", "Quality of service: the provider buffer holds an unknown object."),
    WinsockError(11025, "WSA_QOS_EPOLICYOBJ", "Quality of service: a policy object is wrong."),
    WinsockError(11026, "WSA_QOS_EFLOWDESC", "Quality of service: a flow descriptor is wrong."),
    WinsockError(11027, "WSA_QOS_EPSFLOWSPEC", "Quality of service: the flow specification of the provider is wrong."),
    WinsockError(11028, "WSA_QOS_EPSFILTERSPEC", "Quality of service: the filter of the provider is wrong."),
    WinsockError(11029, "WSA_QOS_ESDMODEOBJ", "Quality of service: the shape discard mode is wrong."),
    WinsockError(11030, "WSA_QOS_ESHAPERATEOBJ", "Quality of service: the shaping rate is wrong."),
    WinsockError(11031, "WSA_QOS_RESERVED_PETYPE", "Quality of service: the kind of policy element is reserved."),
)

STATUSES: dict[int, Status] = {status.value: status for status in _STATUSES}
"""By value."""
WINSOCK_ERRORS: dict[int, WinsockError] = {error.number: error for error in _WINSOCK_ERRORS}
"""By number."""
WIN32_ERRORS: dict[int, str] = {
    0: "ERROR_SUCCESS",
    1: "ERROR_INVALID_FUNCTION",
    2: "ERROR_FILE_NOT_FOUND",
    3: "ERROR_PATH_NOT_FOUND",
    5: "ERROR_ACCESS_DENIED",
    6: "ERROR_INVALID_HANDLE",
    8: "ERROR_NOT_ENOUGH_MEMORY",
    21: "ERROR_NOT_READY",
    22: "ERROR_BAD_COMMAND",
    31: "ERROR_GEN_FAILURE",
    32: "ERROR_SHARING_VIOLATION",
    50: "ERROR_NOT_SUPPORTED",
    51: "ERROR_REM_NOT_LIST",
    52: "ERROR_DUP_NAME",
    53: "ERROR_BAD_NETPATH",
    54: "ERROR_NETWORK_BUSY",
    58: "ERROR_BAD_NET_RESP",
    59: "ERROR_UNEXP_NET_ERR",
    64: "ERROR_NETNAME_DELETED",
    68: "ERROR_TOO_MANY_NAMES",
    71: "ERROR_REQ_NOT_ACCEP",
    87: "ERROR_INVALID_PARAMETER",
    121: "ERROR_SEM_TIMEOUT",
    122: "ERROR_INSUFFICIENT_BUFFER",
    233: "ERROR_PIPE_NOT_CONNECTED",
    234: "ERROR_MORE_DATA",
    487: "ERROR_INVALID_ADDRESS",
    995: "ERROR_OPERATION_ABORTED",
    997: "ERROR_IO_PENDING",
    998: "ERROR_NOACCESS",
    1168: "ERROR_NOT_FOUND",
    1214: "ERROR_INVALID_NETNAME",
    1225: "ERROR_CONNECTION_REFUSED",
    1226: "ERROR_GRACEFUL_DISCONNECT",
    1227: "ERROR_ADDRESS_ALREADY_ASSOCIATED",
    1228: "ERROR_ADDRESS_NOT_ASSOCIATED",
    1229: "ERROR_CONNECTION_INVALID",
    1230: "ERROR_CONNECTION_ACTIVE",
    1231: "ERROR_NETWORK_UNREACHABLE",
    1232: "ERROR_HOST_UNREACHABLE",
    1233: "ERROR_PROTOCOL_UNREACHABLE",
    1234: "ERROR_PORT_UNREACHABLE",
    1235: "ERROR_REQUEST_ABORTED",
    1236: "ERROR_CONNECTION_ABORTED",
    1238: "ERROR_CONNECTION_COUNT_LIMIT",
    1256: "ERROR_HOST_DOWN",
    1450: "ERROR_NO_SYSTEM_RESOURCES",
    1453: "ERROR_WORKING_SET_QUOTA",
    1454: "ERROR_PAGEFILE_QUOTA",
    1455: "ERROR_COMMITMENT_LIMIT",
    1784: "ERROR_INVALID_USER_BUFFER",
    1816: "ERROR_NOT_ENOUGH_QUOTA",
}
"""Names by number, of those that completion ports report."""


def _index() -> tuple[dict[int, tuple[int, ...]], dict[str, tuple[int, ...]]]:
    """Statuses by error number and by name."""
    by_error: dict[int, set[int]] = {}
    by_name: dict[str, set[int]] = {}
    for status in _STATUSES:
        by_name.setdefault(status.name, set()).add(status.value)
        for number in {status.winsock, status.win32} - {None, 0}:
            by_error.setdefault(number or 0, set()).add(status.value)
    names = [(error.name, error.number) for error in _WINSOCK_ERRORS]
    for name, number in (*names, *((name, number) for number, name in WIN32_ERRORS.items())):
        by_name.setdefault(name, set()).update(by_error.get(number, ()))
    errors = {number: tuple(sorted(values)) for number, values in by_error.items()}
    return errors, {name: tuple(sorted(values)) for name, values in by_name.items()}


_BY_ERROR, _BY_NAME = _index()
