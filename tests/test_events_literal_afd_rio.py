"""Literal records of the Winsock events 4000 to 4020.

Each payload is written out from the provider's manifest and, from 4018 on, a public field list, one group of hex digits a field;
first as a record of a 64-bit process, then of a 32-bit one, where a pointer is the lower half.
"""

import pytest

from tests.literals import Literal, afd, check

CASES: tuple[Literal, ...] = (
    afd(
        4000,
        "AfdRioCreateRegistrationDomain",
        "508477660c9affff 0d0200c0",
        "50847766 0d0200c0",
        {"registration_domain": 0xFFFF9A0C66778450, "status": 0xC000020D},
    ),
    afd(4001, "AfdRioCleanupRegistrationDomain", "508477660c9affff", "50847766", {"registration_domain": 0xFFFF9A0C66778450}),
    afd(
        4002,
        "AfdRioCreateCq",
        (
            "407366550c9affff 508477660c9affff ed030000 0000aa5510020000 0000bb1100b8ffff ed060000 ed070000 ed080000 "
            "ab1809090d9affff ac190a0a0d9affff ad1a0b0b0d9affff ae1b0c0c0d9affff 0d0200c0"
        ),
        "40736655 50847766 ed030000 0000aa55 0000bb11 ed060000 ed070000 ed080000 ab180909 ac190a0a ad1a0b0b ae1b0c0c 0d0200c0",
        {
            "cq": 0xFFFF9A0C55667340,
            "registration_domain": 0xFFFF9A0C66778450,
            "entry_count": 1005,
            "user_address": 0x21055AA0000,
            "system_address": 0xFFFFB80011BB0000,
            "buffer_size": 1773,
            "cq_index": 2029,
            "notification_type": 2285,
            "notification_handle": 0xFFFF9A0D090918AB,
            "notification_object": 0xFFFF9A0D0A0A19AC,
            "notification_context1": 0xFFFF9A0D0B0B1AAD,
            "notification_context2": 0xFFFF9A0D0C0C1BAE,
            "status": 0xC000020D,
        },
    ),
    afd(4003, "AfdRioDestroyCq", "407366550c9affff ee020000", "40736655 ee020000", {"cq": 0xFFFF9A0C55667340, "commit": 750}),
    afd(4004, "AfdRioCleanupCq", "407366550c9affff", "40736655", {"cq": 0xFFFF9A0C55667340}),
    afd(
        4005,
        "AfdRioResizeCq",
        "407366550c9affff f0020000 f0030000 f0040000 f0050000 f0060000 0000aa5510020000 0000bb1100b8ffff f0090000 0d0200c0",
        "40736655 f0020000 f0030000 f0040000 f0050000 f0060000 0000aa55 0000bb11 f0090000 0d0200c0",
        {
            "cq": 0xFFFF9A0C55667340,
            "original_entry_count": 752,
            "original_start": 1008,
            "original_end": 1264,
            "commit": 1520,
            "requested_entry_count": 1776,
            "user_address": 0x21055AA0000,
            "system_address": 0xFFFFB80011BB0000,
            "buffer_size": 2544,
            "status": 0xC000020D,
        },
    ),
    afd(
        4006,
        "AfdRioCreateRqPair",
        (
            "10e033220c9affff 609588770c9affff 508477660c9affff f1040000 ab1405050d9affff ac1506060d9affff f1070000 f1080000 "
            "af1809090d9affff b0190a0a0d9affff f10b0000 f10c0000 f10d0000 0d0200c0"
        ),
        ("10e03322 60958877 50847766 f1040000 ab140505 ac150606 f1070000 f1080000 af180909 b0190a0a f10b0000 f10c0000 f10d0000 0d0200c0"),
        {
            "endpoint": 0xFFFF9A0C2233E010,
            "rio_state": 0xFFFF9A0C77889560,
            "registration_domain": 0xFFFF9A0C66778450,
            "send_entry_count": 1265,
            "send_user_address": 0xFFFF9A0D050514AB,
            "send_system_address": 0xFFFF9A0D060615AC,
            "send_buffer_size": 2033,
            "receive_entry_count": 2289,
            "receive_user_address": 0xFFFF9A0D090918AF,
            "receive_system_address": 0xFFFF9A0D0A0A19B0,
            "receive_buffer_size": 3057,
            "send_cq_index": 3313,
            "receive_cq_index": 3569,
            "status": 0xC000020D,
        },
    ),
    afd(
        4007,
        "AfdRioCloseRioState",
        "609588770c9affff f2020000 f2030000 f2040000 f2050000",
        "60958877 f2020000 f2030000 f2040000 f2050000",
        {
            "rio_state": 0xFFFF9A0C77889560,
            "receive_queue_start": 754,
            "receive_queue_end": 1010,
            "send_queue_start": 1266,
            "send_queue_end": 1522,
        },
    ),
    afd(4008, "AfdRioCleanupRioState", "609588770c9affff", "60958877", {"rio_state": 0xFFFF9A0C77889560}),
    afd(
        4009,
        "AfdRioResizeRqPair",
        (
            "609588770c9affff f4020000 f4030000 f4040000 f4050000 af1506060d9affff b01607070d9affff f4080000 f4090000 f40a0000 "
            "f40b0000 f40c0000 b61c0d0d0d9affff b71d0e0e0d9affff f40f0000 0d0200c0"
        ),
        (
            "60958877 f4020000 f4030000 f4040000 f4050000 af150606 b0160707 f4080000 f4090000 f40a0000 f40b0000 f40c0000 b61c0d0d "
            "b71d0e0e f40f0000 0d0200c0"
        ),
        {
            "rio_state": 0xFFFF9A0C77889560,
            "original_send_entry_count": 756,
            "original_send_queue_start": 1012,
            "original_send_queue_end": 1268,
            "requested_send_entry_count": 1524,
            "send_user_address": 0xFFFF9A0D060615AF,
            "send_system_address": 0xFFFF9A0D070716B0,
            "send_buffer_size": 2292,
            "original_receive_entry_count": 2548,
            "original_receive_queue_start": 2804,
            "original_receive_queue_end": 3060,
            "requested_receive_entry_count": 3316,
            "receive_user_address": 0xFFFF9A0D0D0D1CB6,
            "receive_system_address": 0xFFFF9A0D0E0E1DB7,
            "receive_buffer_size": 4084,
            "status": 0xC000020D,
        },
    ),
    afd(
        4010,
        "AfdRioRegisterBuffer",
        "80b7aa990c9affff 508477660c9affff 0000aa5510020000 0000bb1100b8ffff f5050000 f5060000 0d0200c0",
        "80b7aa99 50847766 0000aa55 0000bb11 f5050000 f5060000 0d0200c0",
        {
            "buffer": 0xFFFF9A0C99AAB780,
            "registration_domain": 0xFFFF9A0C66778450,
            "user_address": 0x21055AA0000,
            "system_address": 0xFFFFB80011BB0000,
            "buffer_size": 1525,
            "buffer_id": 1781,
            "status": 0xC000020D,
        },
    ),
    afd(
        4011, "AfdRioDeregisterBuffer", "80b7aa990c9affff f6020000", "80b7aa99 f6020000", {"buffer": 0xFFFF9A0C99AAB780, "references": 758}
    ),
    afd(4012, "AfdRioCleanupBuffer", "80b7aa990c9affff", "80b7aa99", {"buffer": 0xFFFF9A0C99AAB780}),
    afd(
        4013,
        "AfdRioValidateBufferId",
        "508477660c9affff 609588770c9affff f8030000",
        "50847766 60958877 f8030000",
        {"registration_domain": 0xFFFF9A0C66778450, "rio_state": 0xFFFF9A0C77889560, "buffer_id": 1016},
    ),
    afd(
        4014,
        "AfdRioRangeCheck",
        "508477660c9affff 609588770c9affff 80b7aa990c9affff f9040000 b4050000",
        "50847766 60958877 80b7aa99 f9040000 b4050000",
        {
            "registration_domain": 0xFFFF9A0C66778450,
            "rio_state": 0xFFFF9A0C77889560,
            "buffer": 0xFFFF9A0C99AAB780,
            "buffer_offset": 1273,
            "buffer_length": 1460,
        },
    ),
    afd(
        4015,
        "AfdRioSendReceive",
        "609588770c9affff fa020000 fa030000 fa040000",
        "60958877 fa020000 fa030000 fa040000",
        {"rio_state": 0xFFFF9A0C77889560, "buffer_type": 762, "specified_length": 1018, "required_length": 1274},
    ),
    afd(
        4016,
        "AfdNrtCreate",
        "70a699880c9affff 803022110c9affff 0d0200c0",
        "70a69988 80302211 0d0200c0",
        {"name_resolution_handle": 0xFFFF9A0C8899A670, "process": 0xFFFF9A0C11223080, "status": 0xC000020D},
    ),
    afd(
        4017,
        "AfdNrtClose",
        "70a699880c9affff 803022110c9affff",
        "70a69988 80302211",
        {"name_resolution_handle": 0xFFFF9A0C8899A670, "process": 0xFFFF9A0C11223080},
    ),
    afd(
        4018,
        "AfdRioNotifyCq",
        "04000000 3e080000 803022110c9affff 508477660c9affff 407366550c9affff 0d0200c0",
        "04000000 3e080000 80302211 50847766 40736655 0d0200c0",
        {
            "enter_exit": 4,
            "location": 2110,
            "process": 0xFFFF9A0C11223080,
            "reg_domain": 0xFFFF9A0C66778450,
            "cq": 0xFFFF9A0C55667340,
            "status": 0xC000020D,
        },
    ),
    afd(
        4019,
        "AfdAcceptPause",
        "02000000 3f080000 803022110c9affff 10e033220c9affff 01 0d0c0b0a",
        "02000000 3f080000 80302211 10e03322 01 0d0c0b0a",
        {
            "enter_exit": 2,
            "location": 2111,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "pause_un_pause": 1,
            "tl_backlog_count": 168496141,
        },
    ),
    # The byte may be a boolean of four bytes: the size of the payload tells.
    afd(
        4019,
        "AfdAcceptPause",
        "03000000 39080000 803022110c9affff 10e033220c9affff 01000000 0d0c0b0a",
        "03000000 39080000 80302211 10e03322 01000000 0d0c0b0a",
        {
            "enter_exit": 3,
            "location": 2105,
            "process": 0xFFFF9A0C11223080,
            "endpoint": 0xFFFF9A0C2233E010,
            "pause_un_pause": 1,
            "tl_backlog_count": 168496141,
        },
    ),
    afd(
        4020,
        "AfdRioValidateBufferSharing",
        "508477660c9affff 609588770c9affff 04030000 04040000",
        "50847766 60958877 04030000 04040000",
        {"registration_domain": 0xFFFF9A0C66778450, "rio_state": 0xFFFF9A0C77889560, "buffer_id": 772, "buffer_sharing_type": 1028},
    ),
)


@pytest.mark.parametrize("literal", CASES, ids=str)
@pytest.mark.parametrize("pointer_size", [8, 4])
def test_the_bytes_of_a_record_are_read(literal: Literal, pointer_size: int) -> None:
    check(literal, pointer_size)
