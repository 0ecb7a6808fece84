"""Literal records of the Winsock events 1000 to 3007, with IPv4 and IPv6 addresses.

Each payload is written out from the provider's manifest, one group of hex digits a field;
first as a record of a 64-bit process, then of a 32-bit one, where a pointer is the lower half.
"""

import pytest

from tests.literals import Literal, afd, check, hexed

CASES: tuple[Literal, ...] = (
    afd(
        1000,
        "AfdCreate",
        "00000000 e7070000 803022110c9affff 10e033220c9affff 02000000 01000000 06000000 1810000000000000 0d0200c0",
        "00000000 e7070000 80302211 10e03322 02000000 01000000 06000000 18100000 0d0200c0",
        {
            "enter_exit": 0,
            "location": 2023,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "address_family": 2,
            "socket_type": 1,
            "protocol": 6,
            "process_id": 4120,
            "status": 0xC000020D,
        },
    ),
    afd(
        1001,
        "AfdClose",
        "01000000 e8070000 803022110c9affff 10e033220c9affff 0d0200c0",
        "01000000 e8070000 80302211 10e03322 0d0200c0",
        {"enter_exit": 1, "location": 2024, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1002,
        "AfdCleanup",
        "03000000 e9070000 803022110c9affff 10e033220c9affff 0d0200c0",
        "03000000 e9070000 80302211 10e03322 0d0200c0",
        {"enter_exit": 3, "location": 2025, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1003,
        "AfdSend",
        "04000000 ea070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "04000000 ea070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 4,
            "location": 2026,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1004,
        "AfdReceive",
        "02000000 eb070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "02000000 eb070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 2,
            "location": 2027,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1005,
        "AfdSendTo",
        "00000000 ec070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "00000000 ec070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 0,
            "location": 2028,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1006,
        "AfdReceiveFrom",
        "01000000 ed070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "01000000 ed070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 1,
            "location": 2029,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1007,
        "AfdSendToWithAddress",
        (
            "03000000 ee070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "03000000 ee070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 3,
            "location": 2030,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1007,
        "AfdSendToWithAddress",
        (
            "03000000 ee070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "03000000 ee070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 3,
            "location": 2030,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1009,
        "AfdReceiveFromWithAddress",
        (
            "02000000 f0070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "02000000 f0070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 2,
            "location": 2032,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1009,
        "AfdReceiveFromWithAddress",
        (
            "02000000 f0070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "02000000 f0070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 2,
            "location": 2032,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1011,
        "AfdSendMessage",
        "01000000 f2070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "01000000 f2070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 1,
            "location": 2034,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1012,
        "AfdReceiveMessage",
        "03000000 f3070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0",
        "03000000 f3070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0",
        {
            "enter_exit": 3,
            "location": 2035,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
        },
    ),
    afd(
        1013,
        "AfdSendMessageWithAddress",
        (
            "04000000 f4070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "04000000 f4070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 4,
            "location": 2036,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1013,
        "AfdSendMessageWithAddress",
        (
            "04000000 f4070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "04000000 f4070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 4,
            "location": 2036,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1015,
        "AfdReceiveMessageWithAddress",
        (
            "00000000 f6070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "00000000 f6070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 0,
            "location": 2038,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1015,
        "AfdReceiveMessageWithAddress",
        (
            "00000000 f6070000 803022110c9affff 10e033220c9affff 02000000 d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "00000000 f6070000 80302211 10e03322 02000000 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 0,
            "location": 2038,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer_count": 2,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1017,
        "AfdConnect",
        "03000000 f8070000 803022110c9affff 10e033220c9affff 0d0200c0",
        "03000000 f8070000 80302211 10e03322 0d0200c0",
        {"enter_exit": 3, "location": 2040, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1018,
        "AfdConnectWithAddress",
        (
            "04000000 f9070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "04000000 f9070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 4,
            "location": 2041,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1018,
        "AfdConnectWithAddress",
        (
            "04000000 f9070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "04000000 f9070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 4,
            "location": 2041,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1020,
        "AfdConnectEx",
        "00000000 fb070000 803022110c9affff 10e033220c9affff 0d0200c0",
        "00000000 fb070000 80302211 10e03322 0d0200c0",
        {"enter_exit": 0, "location": 2043, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1021,
        "AfdConnectExWithAddress",
        (
            "01000000 fc070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000"
        ),
        "01000000 fc070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 1,
            "location": 2044,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1021,
        "AfdConnectExWithAddress",
        (
            "01000000 fc070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        (
            "01000000 fc070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        {
            "enter_exit": 1,
            "location": 2044,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1023,
        "AfdAccept",
        "04000000 fe070000 803022110c9affff 10e033220c9affff 0d0200c0",
        "04000000 fe070000 80302211 10e03322 0d0200c0",
        {"enter_exit": 4, "location": 2046, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1024,
        "AfdAcceptWithAddress",
        (
            "02000000 ff070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000 306255440c9affff 07000000"
        ),
        ("02000000 ff070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000 30625544 07000000"),
        {
            "enter_exit": 2,
            "location": 2047,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
            "accept_endpoint": 0xFFFF9A0C44556230,
            "current_backlog": 7,
        },
    ),
    afd(
        1024,
        "AfdAcceptWithAddress",
        (
            "02000000 ff070000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 306255440c9affff 07000000"
        ),
        (
            "02000000 ff070000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 30625544 07000000"
        ),
        {
            "enter_exit": 2,
            "location": 2047,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
            "accept_endpoint": 0xFFFF9A0C44556230,
            "current_backlog": 7,
        },
    ),
    afd(
        1026,
        "AfdAcceptEx",
        "01000000 01080000 803022110c9affff 10e033220c9affff 0d0200c0",
        "01000000 01080000 80302211 10e03322 0d0200c0",
        {"enter_exit": 1, "location": 2049, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1027,
        "AfdAcceptExWithAddress",
        (
            "03000000 02080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 10000000 "
            "020001bbc00002070000000000000000 306255440c9affff 07000000"
        ),
        ("03000000 02080000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 10000000 020001bbc00002070000000000000000 30625544 07000000"),
        {
            "enter_exit": 3,
            "location": 2050,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
            "accept_endpoint": 0xFFFF9A0C44556230,
            "current_backlog": 7,
        },
    ),
    afd(
        1027,
        "AfdAcceptExWithAddress",
        (
            "03000000 02080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 306255440c9affff 07000000"
        ),
        (
            "03000000 02080000 80302211 10e03322 d0c0b0a0 b4050000 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 30625544 07000000"
        ),
        {
            "enter_exit": 3,
            "location": 2050,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
            "accept_endpoint": 0xFFFF9A0C44556230,
            "current_backlog": 7,
        },
    ),
    afd(
        1029,
        "AfdBind",
        "02000000 04080000 803022110c9affff 10e033220c9affff 0d0200c0",
        "02000000 04080000 80302211 10e03322 0d0200c0",
        {"enter_exit": 2, "location": 2052, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1030,
        "AfdBindWithAddress",
        "00000000 05080000 803022110c9affff 10e033220c9affff 0d0200c0 10000000 020001bbc00002070000000000000000",
        "00000000 05080000 80302211 10e03322 0d0200c0 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 0,
            "location": 2053,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        1030,
        "AfdBindWithAddress",
        ("00000000 05080000 803022110c9affff 10e033220c9affff 0d0200c0 1c000000 170014e900000000fe80000000000000000000000000012307000000"),
        "00000000 05080000 80302211 10e03322 0d0200c0 1c000000 170014e900000000fe80000000000000000000000000012307000000",
        {
            "enter_exit": 0,
            "location": 2053,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        1032,
        "AfdAbort",
        "03000000 07080000 803022110c9affff 10e033220c9affff 07000000",
        "03000000 07080000 80302211 10e03322 07000000",
        {"enter_exit": 3, "location": 2055, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "reason": 7},
    ),
    afd(
        1033,
        "AfdDatagramDropWithAddress",
        (
            "04000000 08080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 10000000 "
            "020001bbc00002070000000000000000 07000000"
        ),
        "04000000 08080000 80302211 10e03322 d0c0b0a0 b4050000 10000000 020001bbc00002070000000000000000 07000000",
        {
            "enter_exit": 4,
            "location": 2056,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
            "reason": 7,
        },
    ),
    afd(
        1033,
        "AfdDatagramDropWithAddress",
        (
            "04000000 08080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 07000000"
        ),
        (
            "04000000 08080000 80302211 10e03322 d0c0b0a0 b4050000 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 07000000"
        ),
        {
            "enter_exit": 4,
            "location": 2056,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
            "reason": 7,
        },
    ),
    afd(
        1035,
        "AfdOption",
        "00000000 0a080000 803022110c9affff 10e033220c9affff 06000000 00000100 0d0200c0",
        "00000000 0a080000 80302211 10e03322 06000000 00000100 0d0200c0",
        {
            "enter_exit": 0,
            "location": 2058,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "option": 6,
            "value": 65536,
            "status": 0xC000020D,
        },
    ),
    afd(
        1036,
        "AfdWaitForListen",
        "01000000 0b080000 803022110c9affff 10e033220c9affff 0d0200c0",
        "01000000 0b080000 80302211 10e03322 0d0200c0",
        {"enter_exit": 1, "location": 2059, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        1037,
        "AfdListen",
        "03000000 0c080000 803022110c9affff 10e033220c9affff c8000000 0d0200c0",
        "03000000 0c080000 80302211 10e03322 c8000000 0d0200c0",
        {
            "enter_exit": 3,
            "location": 2060,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "backlog": 200,
            "status": 0xC000020D,
        },
    ),
    afd(
        3000,
        "AfdConnectIndication",
        "00000000 15080000 803022110c9affff 10e033220c9affff 0d0200c0",
        "00000000 15080000 80302211 10e03322 0d0200c0",
        {"enter_exit": 0, "location": 2069, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        3001,
        "AfdConnectIndicationWithAddress",
        "01000000 16080000 803022110c9affff 10e033220c9affff 0d0200c0 10000000 020001bbc00002070000000000000000 07000000",
        "01000000 16080000 80302211 10e03322 0d0200c0 10000000 020001bbc00002070000000000000000 07000000",
        {
            "enter_exit": 1,
            "location": 2070,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "status": 0xC000020D,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
            "current_backlog": 7,
        },
    ),
    afd(
        3001,
        "AfdConnectIndicationWithAddress",
        (
            "01000000 16080000 803022110c9affff 10e033220c9affff 0d0200c0 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000 07000000"
        ),
        ("01000000 16080000 80302211 10e03322 0d0200c0 1c000000 170014e900000000fe80000000000000000000000000012307000000 07000000"),
        {
            "enter_exit": 1,
            "location": 2070,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "status": 0xC000020D,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
            "current_backlog": 7,
        },
    ),
    afd(
        3003,
        "AfdDataIndication",
        "04000000 18080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000",
        "04000000 18080000 80302211 10e03322 d0c0b0a0 b4050000",
        {
            "enter_exit": 4,
            "location": 2072,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
        },
    ),
    afd(
        3004,
        "AfdDataIndicationWithAddress",
        ("02000000 19080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 10000000 020001bbc00002070000000000000000"),
        "02000000 19080000 80302211 10e03322 d0c0b0a0 b4050000 10000000 020001bbc00002070000000000000000",
        {
            "enter_exit": 2,
            "location": 2073,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "address_len": 16,
            "address": hexed("020001bbc00002070000000000000000"),
        },
    ),
    afd(
        3004,
        "AfdDataIndicationWithAddress",
        (
            "02000000 19080000 803022110c9affff 10e033220c9affff d0c0b0a0f4010000 b4050000 1c000000 "
            "170014e900000000fe80000000000000000000000000012307000000"
        ),
        ("02000000 19080000 80302211 10e03322 d0c0b0a0 b4050000 1c000000 170014e900000000fe80000000000000000000000000012307000000"),
        {
            "enter_exit": 2,
            "location": 2073,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "buffer": 0x1F4A0B0C0D0,
            "buffer_length": 1460,
            "address_len": 28,
            "address": hexed("170014e900000000fe80000000000000000000000000012307000000"),
        },
    ),
    afd(
        3006,
        "AfdDisconnect",
        "01000000 1b080000 803022110c9affff 10e033220c9affff 0d0200c0",
        "01000000 1b080000 80302211 10e03322 0d0200c0",
        {"enter_exit": 1, "location": 2075, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "status": 0xC000020D},
    ),
    afd(
        3007,
        "AfdSendBackLog",
        "03000000 1c080000 803022110c9affff 10e033220c9affff 00000200",
        "03000000 1c080000 80302211 10e03322 00000200",
        {"enter_exit": 3, "location": 2076, "process": 0xFFFF9A0C11223080, "endpoint": 0xFFFF9A0C2233E010, "send_backlog": 131072},
    ),
)


@pytest.mark.parametrize("literal", CASES, ids=str)
@pytest.mark.parametrize("pointer_size", [8, 4])
def test_the_bytes_of_a_record_are_read(literal: Literal, pointer_size: int) -> None:
    check(literal, pointer_size)
