"""Literal records of the other kernel events: threads, images, their identities, stacks, volumes, losses.

Each payload is written out from the layouts that public traces and the MOF classes of the kernel have, one group of hex digits a field;
first as a record of a 64-bit process, then of a 32-bit one, where a pointer is the lower half.
"""

from uuid import UUID

import pytest

from collector.events.system import IMAGE, IMAGE_ID, LOST_EVENT, PROCESS, STACK_WALK, THREAD, VOLUME
from tests.literals import Literal, check, classic

CASES: tuple[Literal, ...] = (
    classic(THREAD, 1, 0, "ThreadStart", "1c100000 18100000", "1c100000 18100000", {"thread_id": 4124, "process_id": 4120}),
    classic(
        THREAD,
        1,
        1,
        "ThreadStart",
        ("18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 34126455f67f0000 01"),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "wait_mode": 1,
        },
    ),
    classic(
        THREAD,
        1,
        2,
        "ThreadStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 "
            "34126455f67f0000 0000112244000000 4d000000"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 00001122 4d000000",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
        },
    ),
    classic(
        THREAD,
        1,
        3,
        "ThreadStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": None,
        },
    ),
    classic(
        THREAD,
        1,
        4,
        "ThreadStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01 77006f0072006b00650072002000e9000000"
        ),
        (
            "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01 "
            "77006f0072006b00650072002000e9000000"
        ),
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": "worker \u00e9",
        },
    ),
    classic(THREAD, 2, 0, "ThreadEnd", "1c100000 18100000", "1c100000 18100000", {"thread_id": 4124, "process_id": 4120}),
    classic(THREAD, 2, 1, "ThreadEnd", "18100000 1c100000", "18100000 1c100000", {"process_id": 4120, "thread_id": 4124}),
    classic(
        THREAD,
        2,
        2,
        "ThreadEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 "
            "34126455f67f0000 0000112244000000 4d000000"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 00001122 4d000000",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
        },
    ),
    classic(
        THREAD,
        2,
        3,
        "ThreadEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": None,
        },
    ),
    classic(
        THREAD,
        2,
        4,
        "ThreadEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01 77006f0072006b00650072002000e9000000"
        ),
        (
            "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01 "
            "77006f0072006b00650072002000e9000000"
        ),
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": "worker \u00e9",
        },
    ),
    classic(THREAD, 3, 0, "ThreadDCStart", "1c100000 18100000", "1c100000 18100000", {"thread_id": 4124, "process_id": 4120}),
    classic(
        THREAD,
        3,
        1,
        "ThreadDCStart",
        ("18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 34126455f67f0000 01"),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "wait_mode": 1,
        },
    ),
    classic(
        THREAD,
        3,
        2,
        "ThreadDCStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 "
            "34126455f67f0000 0000112244000000 4d000000"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 00001122 4d000000",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
        },
    ),
    classic(
        THREAD,
        3,
        3,
        "ThreadDCStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": None,
        },
    ),
    classic(
        THREAD,
        3,
        4,
        "ThreadDCStart",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01 77006f0072006b00650072002000e9000000"
        ),
        (
            "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01 "
            "77006f0072006b00650072002000e9000000"
        ),
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": "worker \u00e9",
        },
    ),
    classic(THREAD, 4, 0, "ThreadDCEnd", "1c100000 18100000", "1c100000 18100000", {"thread_id": 4124, "process_id": 4120}),
    classic(THREAD, 4, 1, "ThreadDCEnd", "18100000 1c100000", "18100000 1c100000", {"process_id": 4120, "thread_id": 4124}),
    classic(
        THREAD,
        4,
        2,
        "ThreadDCEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 201201b0f87f0000 "
            "34126455f67f0000 0000112244000000 4d000000"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 201201b0 34126455 00001122 4d000000",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "start_addr": 0x7FF8B0011220,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
        },
    ),
    classic(
        THREAD,
        4,
        3,
        "ThreadDCEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01"
        ),
        "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01",
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": None,
        },
    ),
    classic(
        THREAD,
        4,
        4,
        "ThreadDCEnd",
        (
            "18100000 1c100000 0080bb1100b8ffff 0020bb1100b8ffff 0000a00000000000 00809f0000000000 ff00000000000000 "
            "34126455f67f0000 0000112244000000 4d000000 fe 05 02 01 77006f0072006b00650072002000e9000000"
        ),
        (
            "18100000 1c100000 0080bb11 0020bb11 0000a000 00809f00 ff000000 34126455 00001122 4d000000 fe 05 02 01 "
            "77006f0072006b00650072002000e9000000"
        ),
        {
            "process_id": 4120,
            "thread_id": 4124,
            "stack_base": 0xFFFFB80011BB8000,
            "stack_limit": 0xFFFFB80011BB2000,
            "user_stack_base": 0xA00000,
            "user_stack_limit": 0x9F8000,
            "affinity": 255,
            "win32_start_addr": 0x7FF655641234,
            "teb_base": 0x4422110000,
            "sub_process_tag": 77,
            "base_priority": -2,
            "page_priority": 5,
            "io_priority": 2,
            "thread_flags": 1,
            "thread_name": "worker \u00e9",
        },
    ),
    classic(
        THREAD,
        0x48,
        2,
        "ThreadName",
        "18100000 1c100000 69006f000000",
        "18100000 1c100000 69006f000000",
        {"process_id": 4120, "thread_id": 4124, "thread_name": "io"},
    ),
    classic(
        PROCESS,
        10,
        0,
        "ImageLoad",
        "000000b0f87f0000 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        "000000b0 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        {"image_base": 0x7FF8B0000000, "image_size": 2064384, "file_name": "\\SystemRoot\\a.sys"},
    ),
    classic(
        PROCESS,
        10,
        1,
        "ImageLoad",
        "000000b0f87f0000 00801f0000000000 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        "000000b0 00801f00 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        {"image_base": 0x7FF8B0000000, "image_size": 0x1F8000, "process_id": 4120, "file_name": "\\Windows\\b.dll"},
    ),
    classic(
        PROCESS,
        10,
        2,
        "ImageLoad",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        PROCESS,
        10,
        3,
        "ImageLoad",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        10,
        0,
        "ImageLoad",
        "000000b0f87f0000 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        "000000b0 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        {"image_base": 0x7FF8B0000000, "image_size": 2064384, "file_name": "\\SystemRoot\\a.sys"},
    ),
    classic(
        IMAGE,
        10,
        1,
        "ImageLoad",
        "000000b0f87f0000 00801f0000000000 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        "000000b0 00801f00 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        {"image_base": 0x7FF8B0000000, "image_size": 0x1F8000, "process_id": 4120, "file_name": "\\Windows\\b.dll"},
    ),
    classic(
        IMAGE,
        10,
        2,
        "ImageLoad",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        10,
        3,
        "ImageLoad",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        2,
        0,
        "ImageUnload",
        "000000b0f87f0000 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        "000000b0 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        {"image_base": 0x7FF8B0000000, "image_size": 2064384, "file_name": "\\SystemRoot\\a.sys"},
    ),
    classic(
        IMAGE,
        2,
        1,
        "ImageUnload",
        "000000b0f87f0000 00801f0000000000 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        "000000b0 00801f00 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        {"image_base": 0x7FF8B0000000, "image_size": 0x1F8000, "process_id": 4120, "file_name": "\\Windows\\b.dll"},
    ),
    classic(
        IMAGE,
        2,
        2,
        "ImageUnload",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        2,
        3,
        "ImageUnload",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        3,
        0,
        "ImageDCStart",
        "000000b0f87f0000 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        "000000b0 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        {"image_base": 0x7FF8B0000000, "image_size": 2064384, "file_name": "\\SystemRoot\\a.sys"},
    ),
    classic(
        IMAGE,
        3,
        1,
        "ImageDCStart",
        "000000b0f87f0000 00801f0000000000 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        "000000b0 00801f00 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        {"image_base": 0x7FF8B0000000, "image_size": 0x1F8000, "process_id": 4120, "file_name": "\\Windows\\b.dll"},
    ),
    classic(
        IMAGE,
        3,
        2,
        "ImageDCStart",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        3,
        3,
        "ImageDCStart",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        4,
        0,
        "ImageDCEnd",
        "000000b0f87f0000 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        "000000b0 00801f00 5c00530079007300740065006d0052006f006f0074005c0061002e007300790073000000",
        {"image_base": 0x7FF8B0000000, "image_size": 2064384, "file_name": "\\SystemRoot\\a.sys"},
    ),
    classic(
        IMAGE,
        4,
        1,
        "ImageDCEnd",
        "000000b0f87f0000 00801f0000000000 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        "000000b0 00801f00 18100000 5c00570069006e0064006f00770073005c0062002e0064006c006c000000",
        {"image_base": 0x7FF8B0000000, "image_size": 0x1F8000, "process_id": 4120, "file_name": "\\Windows\\b.dll"},
    ),
    classic(
        IMAGE,
        4,
        2,
        "ImageDCEnd",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE,
        4,
        3,
        "ImageDCEnd",
        (
            "000000b0f87f0000 00801f0000000000 18100000 cdab1f00 3c4c2023 0c 01 0000 0000008001000000 00000000 00000000 00000000 "
            "00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        (
            "000000b0 00801f00 18100000 cdab1f00 3c4c2023 0c 01 0000 00000080 00000000 00000000 00000000 00000000 "
            "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c006e00740064006c006c002e0064006c006c000000"
        ),
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "image_checksum": 2075597,
            "time_date_stamp": 589319228,
            "signature_level": 12,
            "signature_type": 1,
            "reserved0": 0,
            "default_base": 0x180000000,
            "reserved1": 0,
            "reserved2": 0,
            "reserved3": 0,
            "reserved4": 0,
            "file_name": "\\Device\\HarddiskVolume3\\ntdll.dll",
        },
    ),
    classic(
        IMAGE_ID,
        0,
        2,
        "ImageId",
        "000000b0f87f0000 00801f0000000000 18100000 3c4c2023 6e00740064006c006c002e0064006c006c000000",
        "000000b0 00801f00 18100000 3c4c2023 6e00740064006c006c002e0064006c006c000000",
        {
            "image_base": 0x7FF8B0000000,
            "image_size": 0x1F8000,
            "process_id": 4120,
            "time_date_stamp": 589319228,
            "original_file_name": "ntdll.dll",
        },
    ),
    classic(
        IMAGE_ID, 32, 2, "ImageIdNone", "000000b0f87f0000 18100000", "000000b0 18100000", {"image_base": 0x7FF8B0000000, "process_id": 4120}
    ),
    classic(
        IMAGE_ID,
        36,
        2,
        "DbgIdRsds",
        "000000b0f87f0000 18100000 3a423be452c9083453e4e17ae687bf0b 01000000 6e74646c6c2e70646200",
        "000000b0 18100000 3a423be452c9083453e4e17ae687bf0b 01000000 6e74646c6c2e70646200",
        {
            "image_base": 0x7FF8B0000000,
            "process_id": 4120,
            "guid": UUID("e43b423a-c952-3408-53e4-e17ae687bf0b").bytes_le,
            "age": 1,
            "pdb_name": "ntdll.pdb",
        },
    ),
    classic(
        IMAGE_ID,
        37,
        2,
        "DbgIdIlRsds",
        "000000b0f87f0000 18100000 3a423be452c9083453e4e17ae687bf0b 01000000 6e74646c6c2e70646200",
        "000000b0 18100000 3a423be452c9083453e4e17ae687bf0b 01000000 6e74646c6c2e70646200",
        {
            "image_base": 0x7FF8B0000000,
            "process_id": 4120,
            "guid": UUID("e43b423a-c952-3408-53e4-e17ae687bf0b").bytes_le,
            "age": 1,
            "pdb_name": "ntdll.pdb",
        },
    ),
    classic(
        IMAGE_ID,
        38,
        2,
        "DbgIdPpdb",
        "000000b0f87f0000 18100000 3c4c2023 0001 4d50",
        "000000b0 18100000 3c4c2023 0001 4d50",
        {"image_base": 0x7FF8B0000000, "process_id": 4120, "time_date_stamp": 589319228, "major_version": 256, "minor_version": 20557},
    ),
    classic(
        IMAGE_ID,
        40,
        1,
        "ImageIdDeterministic",
        "000000b0f87f0000 18100000",
        "000000b0 18100000",
        {"image_base": 0x7FF8B0000000, "process_id": 4120},
    ),
    classic(
        STACK_WALK,
        0x20,
        2,
        "StackWalk",
        "e1503d7f5b020000 18100000 1c100000 4433221100f8ffff 231201b0f87f0000 34126455f67f0000",
        "e1503d7f5b020000 18100000 1c100000 44332211 231201b0 34126455",
        {
            "event_time_stamp": 2592000004321,
            "stack_process": 4120,
            "stack_thread": 4124,
            "frames": [0xFFFFF80011223344, 0x7FF8B0011223, 0x7FF655641234],
        },
    ),
    classic(
        STACK_WALK,
        0x22,
        2,
        "StackKeyCreate",
        "785634120c9affff 231201b0f87f0000 34126455f67f0000",
        "78563412 231201b0 34126455",
        {"stack_key": 0xFFFF9A0C12345678, "frames": [0x7FF8B0011223, 0x7FF655641234]},
    ),
    classic(
        STACK_WALK,
        0x23,
        2,
        "StackKeyDelete",
        "785634120c9affff 231201b0f87f0000 34126455f67f0000",
        "78563412 231201b0 34126455",
        {"stack_key": 0xFFFF9A0C12345678, "frames": [0x7FF8B0011223, 0x7FF655641234]},
    ),
    classic(
        STACK_WALK,
        0x24,
        2,
        "StackKeyRundown",
        "785634120c9affff 231201b0f87f0000 34126455f67f0000",
        "78563412 231201b0 34126455",
        {"stack_key": 0xFFFF9A0C12345678, "frames": [0x7FF8B0011223, 0x7FF655641234]},
    ),
    classic(
        STACK_WALK,
        0x25,
        2,
        "StackKeyKernel",
        "e1503d7f5b020000 18100000 1c100000 785634120c9affff",
        "e1503d7f5b020000 18100000 1c100000 78563412",
        {"event_time_stamp": 2592000004321, "stack_process": 4120, "stack_thread": 4124, "stack_key": 0xFFFF9A0C12345678},
    ),
    classic(
        STACK_WALK,
        0x26,
        2,
        "StackKeyUser",
        "e1503d7f5b020000 18100000 1c100000 785634120c9affff",
        "e1503d7f5b020000 18100000 1c100000 78563412",
        {"event_time_stamp": 2592000004321, "stack_process": 4120, "stack_thread": 4124, "stack_key": 0xFFFF9A0C12345678},
    ),
    classic(
        VOLUME,
        35,
        0,
        "VolumeMapping",
        "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c000000 43003a005c000000",
        "5c004400650076006900630065005c0048006100720064006400690073006b0056006f006c0075006d00650033005c000000 43003a005c000000",
        {"nt_path": "\\Device\\HarddiskVolume3\\", "dos_path": "C:\\"},
    ),
    classic(LOST_EVENT, 32, 0, "RTLostEvent", "", "", {}),
    classic(LOST_EVENT, 33, 0, "RTLostBuffer", "", "", {}),
    classic(LOST_EVENT, 34, 0, "RTLostFile", "", "", {}),
)


@pytest.mark.parametrize("literal", CASES, ids=str)
@pytest.mark.parametrize("pointer_size", [8, 4])
def test_the_bytes_of_a_record_are_read(literal: Literal, pointer_size: int) -> None:
    check(literal, pointer_size)
