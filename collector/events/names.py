"""Who asked for which name and what came back, and changes of the Winsock catalog: the providers of the DNS client and of Winsock itself.

The results are one text: addresses and other records, each followed by a semicolon. IPv4 addresses come mapped into IPv6 or plain.
"""

from uuid import UUID

from collector.schema import EventSchema, ansi, guid, rest, u32, u64, utf16

__all__ = ["DNS_CLIENT", "NAME_EVENTS", "NAME_RESOLUTION", "WINSOCK_CATALOG"]

DNS_CLIENT = UUID("1c95126e-7eea-49a9-a3fe-a378b03ddb4d")
NAME_RESOLUTION = UUID("55404e71-4db9-4deb-a5f5-8f86e46dde56")
WINSOCK_CATALOG = UUID("d5c25f9a-4d47-493e-9184-40dd397a004d")
"""Microsoft-Windows-Winsock-WS2HELP."""

_MANIFEST = "manifest of Microsoft-Windows-{} as public dumps of Windows 10 have it"
_DNS = _MANIFEST.format("DNS-Client")
_WINSOCK = _MANIFEST.format("Winsock-NameResolution")
_CATALOG = _MANIFEST.format("Winsock-WS2HELP") + "; meaning by Microsoft's page on catalog change tracing"

_QUERY = (utf16("query_name"), u32("query_type", enum="DNS type"))
_RESULT = (utf16("node_name"), u32("status", enum="Win32"), utf16("result"), rest("more"))
_ENTRY = (utf16("lsp_name"), u32("catalog", unit="bits"), ansi("installer"), guid("guid"), u32("category"), rest("more"))

NAME_EVENTS: tuple[EventSchema, ...] = (
    EventSchema(
        DNS_CLIENT,
        3008,
        (0,),
        "DnsQueryCompleted",
        (*_QUERY, u64("query_options"), u32("query_status", enum="Win32"), utf16("query_results"), rest("more")),
        _DNS,
    ),
    EventSchema(
        DNS_CLIENT,
        3018,
        (0,),
        "DnsCacheLookup",
        (*_QUERY, u64("query_options"), u32("status", enum="Win32"), utf16("query_results"), rest("more")),
        _DNS,
    ),
    EventSchema(
        DNS_CLIENT,
        3020,
        (0,),
        "DnsQueryResponse",
        (
            *_QUERY,
            u32("network_index"),
            u32("interface_index"),
            u32("status", enum="Win32"),
            utf16("query_results"),
            rest("more"),
        ),
        _DNS,
    ),
    EventSchema(NAME_RESOLUTION, 1001, (0,), "WinsockGaiEnd", _RESULT, _WINSOCK),
    EventSchema(NAME_RESOLUTION, 1004, (0,), "WinsockGaiExEnd", _RESULT, _WINSOCK),
    EventSchema(WINSOCK_CATALOG, 1, (0,), "LspInstalled", _ENTRY, _CATALOG),
    EventSchema(WINSOCK_CATALOG, 2, (0,), "LspRemoved", _ENTRY, _CATALOG),
    EventSchema(WINSOCK_CATALOG, 3, (0,), "LspDisabled", _ENTRY, _CATALOG),
    EventSchema(WINSOCK_CATALOG, 4, (0,), "WinsockCatalogReset", (u32("catalog", unit="bits"), rest("more")), _CATALOG),
)
