"""Literal records of the kernel process events, versions 0 to 5.

Each payload is written out from the layouts that public traces and the MOF classes of the kernel have, one group of hex digits a field;
first as a record of a 64-bit process, then of a 32-bit one, where a pointer is the lower half.
"""

import pytest

from collector.events.system import PROCESS
from tests.literals import Literal, check, classic, hexed

CASES: tuple[Literal, ...] = (
    classic(
        PROCESS,
        1,
        0,
        "ProcessStart",
        (
            "1810000000000000 8402000000000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        "18100000 84020000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500",
        {
            "process_id": 4120,
            "parent_id": 644,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        1,
        1,
        "ProcessStart",
        (
            "00c0bbaa01000000 18100000 84020000 01000000 03010000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        (
            "00c0bbaa 18100000 84020000 01000000 03010000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500"
        ),
        {
            "page_directory_base": 0x1AABBC000,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        1,
        2,
        "ProcessStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500 670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        1,
        3,
        "ProcessStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        1,
        4,
        "ProcessStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 02000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 02000000 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
        },
    ),
    classic(
        PROCESS,
        2,
        0,
        "ProcessEnd",
        (
            "1810000000000000 8402000000000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        "18100000 84020000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500",
        {
            "process_id": 4120,
            "parent_id": 644,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        2,
        1,
        "ProcessEnd",
        (
            "00c0bbaa01000000 18100000 84020000 01000000 050000c0 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        (
            "00c0bbaa 18100000 84020000 01000000 050000c0 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500"
        ),
        {
            "page_directory_base": 0x1AABBC000,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": -1073741819,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        2,
        2,
        "ProcessEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 050000c0 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 050000c0 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500 670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": -1073741819,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        2,
        3,
        "ProcessEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 050000c0 00c0bbaa01000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 050000c0 00c0bbaa 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": -1073741819,
            "directory_table_base": 0x1AABBC000,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        2,
        4,
        "ProcessEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 050000c0 00c0bbaa01000000 02000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        (
            "80302211 18100000 84020000 01000000 050000c0 00c0bbaa 02000000 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": -1073741819,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
        },
    ),
    classic(
        PROCESS,
        3,
        0,
        "ProcessDCStart",
        "1810000000000000 8402000000000000 00000000 67616d652e65786500",
        "18100000 84020000 00000000 67616d652e65786500",
        {"process_id": 4120, "parent_id": 644, "user_sid": None, "image_file_name": "game.exe"},
    ),
    classic(
        PROCESS,
        3,
        1,
        "ProcessDCStart",
        "00c0bbaa01000000 18100000 84020000 01000000 03010000 00000000 67616d652e65786500",
        "00c0bbaa 18100000 84020000 01000000 03010000 00000000 67616d652e65786500",
        {
            "page_directory_base": 0x1AABBC000,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": None,
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        3,
        2,
        "ProcessDCStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00000000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        ("80302211 18100000 84020000 01000000 03010000 00000000 67616d652e65786500 670061006d0065002e0065007800650020002d0078000000"),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": None,
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        3,
        3,
        "ProcessDCStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 00000000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 00000000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "user_sid": None,
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        3,
        4,
        "ProcessDCStart",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 02000000 00000000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 02000000 00000000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": None,
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
        },
    ),
    classic(
        PROCESS,
        4,
        0,
        "ProcessDCEnd",
        (
            "1810000000000000 8402000000000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        "18100000 84020000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500",
        {
            "process_id": 4120,
            "parent_id": 644,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        4,
        1,
        "ProcessDCEnd",
        (
            "00c0bbaa01000000 18100000 84020000 01000000 03010000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500"
        ),
        (
            "00c0bbaa 18100000 84020000 01000000 03010000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500"
        ),
        {
            "page_directory_base": 0x1AABBC000,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
        },
    ),
    classic(
        PROCESS,
        4,
        2,
        "ProcessDCEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500 670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        4,
        3,
        "ProcessDCEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        4,
        4,
        "ProcessDCEnd",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 02000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 02000000 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
        },
    ),
    classic(
        PROCESS,
        39,
        2,
        "ProcessDefunct",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 0df0feca10000000 010500000000000515000000112233445566778899aabbcce9030000 "
            "67616d652e65786500 670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        39,
        3,
        "ProcessDefunct",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
        },
    ),
    classic(
        PROCESS,
        39,
        4,
        "ProcessDefunct",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 02000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 02000000 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
        },
    ),
    classic(
        PROCESS,
        39,
        5,
        "ProcessDefunct",
        (
            "803022110c9affff 18100000 84020000 01000000 03010000 00c0bbaa01000000 02000000 0df0fecaefbeadde1000000077777777 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000 009c2000e88cdb01"
        ),
        (
            "80302211 18100000 84020000 01000000 03010000 00c0bbaa 02000000 0df0feca10000000 "
            "010500000000000515000000112233445566778899aabbcce9030000 67616d652e65786500 "
            "670061006d0065002e0065007800650020002d0078000000 50006b0067005f0031000000 4100700070000000 009c2000e88cdb01"
        ),
        {
            "unique_process_key": 0xFFFF9A0C11223080,
            "process_id": 4120,
            "parent_id": 644,
            "session_id": 1,
            "exit_status": 259,
            "directory_table_base": 0x1AABBC000,
            "flags": 2,
            "user_sid": hexed("010500000000000515000000112233445566778899aabbcce9030000"),
            "image_file_name": "game.exe",
            "command_line": "game.exe -x",
            "package_full_name": "Pkg_1",
            "application_id": "App",
            "exit_time": 133855542000000000,
        },
    ),
    classic(PROCESS, 11, 2, "ProcessTerminate", "18100000", "18100000", {"process_id": 4120}),
)


@pytest.mark.parametrize("literal", CASES, ids=str)
@pytest.mark.parametrize("pointer_size", [8, 4])
def test_the_bytes_of_a_record_are_read(literal: Literal, pointer_size: int) -> None:
    check(literal, pointer_size)
