"""The kernel's own events that say whose the others are: processes, threads, images, stacks, image identities, volumes, losses.

Process and thread of these events are in the payload: the header of a rundown or of a stack has none, that of a start names the creator.
"""

from uuid import UUID

from collector.schema import (
    EventSchema,
    Field,
    ansi,
    guid,
    i8,
    i32,
    i64,
    pointer,
    pointers,
    sid,
    sizet,
    u8,
    u16,
    u32,
    u64,
    utf16,
)

__all__ = ["IMAGE", "IMAGE_ID", "LOST_EVENT", "PROCESS", "STACK_WALK", "SYSTEM_EVENTS", "THREAD", "VOLUME"]

PROCESS = UUID("3d6fa8d0-fe05-11d0-9dda-00c04fd7ba7c")
THREAD = UUID("3d6fa8d1-fe05-11d0-9dda-00c04fd7ba7c")
IMAGE = UUID("2cb15d1d-5fc1-11d2-abe1-00a0c911f518")
STACK_WALK = UUID("def2fe46-7bd6-4b80-bd94-f57fe20d0ce3")
IMAGE_ID = UUID("b3e675d7-2554-4f18-830b-2762732560de")
VOLUME = UUID("9b79ee91-b5fd-41c0-a243-4248e266e9d0")
LOST_EVENT = UUID("6a399ae0-4bc6-4de9-870b-3657f8947e7e")

_MOF = "MOF classes of the kernel provider, as in perfview"
_SEEN = "public traces of Windows 6.2 to 10.0.26100: every record decodes to its last byte"
_SEEN_STACKS = "stack records of net.4.5.2.x64 and .x86, the public test traces of perfview"
_DOCS = "Microsoft's ETW documentation and phnt; no public trace has one"
_DEFUNCT = "Process_TypeGroup1 of Microsoft's ETW documentation, which lists opcode 39 with the others"


def _of(provider: UUID, opcode: int, versions: tuple[int, ...], name: str, fields: tuple[Field, ...], source: str) -> EventSchema:
    return EventSchema(provider, opcode, versions, name, fields, source, is_classic=True)


# ---------------------------------------------------------------------------------------------------- processes

# unique_process_key is the address of the process object, which the socket events name.
_IDS = (u32("process_id"), u32("parent_id"), u32("session_id"), i32("exit_status", enum="NTSTATUS"))
_NAMES = (sid("user_sid"), ansi("image_file_name"), utf16("command_line"))
_PACKAGE = (utf16("package_full_name"), utf16("application_id"))
_PROCESS_0 = (pointer("process_id"), pointer("parent_id"), sid("user_sid"), ansi("image_file_name"))
_PROCESS_1 = (pointer("page_directory_base"), *_IDS, sid("user_sid"), ansi("image_file_name"))
_PROCESS_2 = (pointer("unique_process_key"), *_IDS, *_NAMES)
_PROCESS_3 = (pointer("unique_process_key"), *_IDS, pointer("directory_table_base"), *_NAMES)
_PROCESS_4 = (pointer("unique_process_key"), *_IDS, pointer("directory_table_base"), u32("flags", enum="ProcessFlags"), *_NAMES, *_PACKAGE)

_PROCESS_OPCODES = ((1, "ProcessStart"), (2, "ProcessEnd"), (3, "ProcessDCStart"), (4, "ProcessDCEnd"))

_PROCESSES = (
    *(
        _of(PROCESS, opcode, (version,), name, fields, source)
        for opcode, name in _PROCESS_OPCODES
        for version, fields, source in (
            (0, _PROCESS_0, _MOF),
            (1, _PROCESS_1, _MOF),
            (2, _PROCESS_2, _MOF),
            (3, _PROCESS_3, _MOF),
            (4, _PROCESS_4, _SEEN),
        )
    ),
    _of(PROCESS, 39, (2,), "ProcessDefunct", _PROCESS_2, _DEFUNCT),
    _of(PROCESS, 39, (3,), "ProcessDefunct", _PROCESS_3, _DEFUNCT),
    _of(PROCESS, 39, (4,), "ProcessDefunct", _PROCESS_4, _DEFUNCT),
    _of(PROCESS, 39, (5,), "ProcessDefunct", (*_PROCESS_4, i64("exit_time", unit="FILETIME")), _SEEN),
    _of(PROCESS, 11, (2,), "ProcessTerminate", (u32("process_id"),), _SEEN),
)

# ---------------------------------------------------------------------------------------------------- threads

_THREAD_IDS = (u32("process_id"), u32("thread_id"))
_STACKS = (pointer("stack_base"), pointer("stack_limit"), pointer("user_stack_base"), pointer("user_stack_limit"))
_THREAD_1 = (*_THREAD_IDS, *_STACKS, pointer("start_addr"), pointer("win32_start_addr"), i8("wait_mode"))
_THREAD_2 = (*_THREAD_IDS, *_STACKS, pointer("start_addr"), pointer("win32_start_addr"), pointer("teb_base"), u32("sub_process_tag"))
_THREAD_3 = (
    *_THREAD_IDS,
    *_STACKS,
    pointer("affinity"),
    pointer("win32_start_addr"),
    pointer("teb_base"),
    u32("sub_process_tag"),
    i8("base_priority"),
    u8("page_priority"),
    u8("io_priority"),
    u8("thread_flags"),
    utf16("thread_name", required=False),  # since Windows 10
)

_THREAD_OPCODES = ((1, "ThreadStart"), (2, "ThreadEnd"), (3, "ThreadDCStart"), (4, "ThreadDCEnd"))

_THREADS = (
    *(
        _of(THREAD, opcode, versions, name, fields, source)
        for opcode, name in _THREAD_OPCODES
        for versions, fields, source in (
            ((0,), (u32("thread_id"), u32("process_id")), _MOF),  # the other way round
            ((1,), _THREAD_1 if opcode in (1, 3) else _THREAD_IDS, _MOF),
            ((2,), _THREAD_2, _MOF),
            ((3, 4), _THREAD_3, _SEEN),
        )
    ),
    _of(THREAD, 0x48, (), "ThreadName", (*_THREAD_IDS, utf16("thread_name")), _SEEN),
)

# ---------------------------------------------------------------------------------------------------- images

# default_base of a 32-bit image on 64-bit Windows is read from the wrong place: the true value is its high half.
_IMAGE_1 = (pointer("image_base"), sizet("image_size", unit="bytes"), u32("process_id"))
_IMAGE_2 = (
    *_IMAGE_1,
    u32("image_checksum"),
    u32("time_date_stamp"),
    u8("signature_level"),
    u8("signature_type"),
    u16("reserved0"),
    pointer("default_base"),
    u32("reserved1"),
    u32("reserved2"),
    u32("reserved3"),
    u32("reserved4"),
    utf16("file_name"),
)

# The hook of a load is 0x030A: the group of processes.
_IMAGE_OPCODES = (
    (PROCESS, 10, "ImageLoad"),
    (IMAGE, 10, "ImageLoad"),
    (IMAGE, 2, "ImageUnload"),
    (IMAGE, 3, "ImageDCStart"),
    (IMAGE, 4, "ImageDCEnd"),
)

_IMAGES = tuple(
    _of(provider, opcode, versions, name, fields, source)
    for provider, opcode, name in _IMAGE_OPCODES
    for versions, fields, source in (
        ((0,), (pointer("image_base"), u32("image_size", unit="bytes"), utf16("file_name")), _MOF),
        ((1,), (*_IMAGE_1, utf16("file_name")), _MOF),
        ((2, 3), _IMAGE_2, _SEEN),
    )
)

_IMAGE_IDENTITIES = (
    _of(
        IMAGE_ID,
        0,
        (2,),
        "ImageId",
        (
            pointer("image_base"),
            sizet("image_size", unit="bytes"),
            u32("process_id"),
            u32("time_date_stamp"),
            utf16("original_file_name"),
        ),
        _SEEN,
    ),
    _of(IMAGE_ID, 32, (2,), "ImageIdNone", (pointer("image_base"), u32("process_id")), _SEEN),
    _of(
        IMAGE_ID,
        36,
        (2,),
        "DbgIdRsds",
        (pointer("image_base"), u32("process_id"), guid("guid"), u32("age"), ansi("pdb_name")),
        _SEEN,
    ),
    _of(
        IMAGE_ID,
        37,
        (2,),
        "DbgIdIlRsds",  # the symbol file of managed code
        (pointer("image_base"), u32("process_id"), guid("guid"), u32("age"), ansi("pdb_name")),
        _SEEN,
    ),
    _of(
        IMAGE_ID,
        38,
        (2,),
        "DbgIdPpdb",
        (pointer("image_base"), u32("process_id"), u32("time_date_stamp"), u16("major_version"), u16("minor_version")),
        _SEEN,
    ),
    _of(IMAGE_ID, 40, (1,), "ImageIdDeterministic", (pointer("image_base"), u32("process_id")), _SEEN),
)

# ---------------------------------------------------------------------------------------------------- stacks

# event_time_stamp is the raw clock of the event that the stack belongs to; frames are innermost first. A key is defined by its
# deletion or by the rundown, thus after the records that refer to it.
_STACK_OF = (u64("event_time_stamp", unit="ticks"), u32("stack_process"), u32("stack_thread"))
_KEY = (pointer("stack_key"), pointers("frames"))

_STACKWALKS = (
    _of(STACK_WALK, 0x20, (), "StackWalk", (*_STACK_OF, pointers("frames")), _SEEN_STACKS),
    _of(STACK_WALK, 0x22, (), "StackKeyCreate", _KEY, _DOCS),
    _of(STACK_WALK, 0x23, (), "StackKeyDelete", _KEY, _SEEN_STACKS),
    _of(STACK_WALK, 0x24, (), "StackKeyRundown", _KEY, _SEEN_STACKS),
    _of(STACK_WALK, 0x25, (), "StackKeyKernel", (*_STACK_OF, pointer("stack_key")), _SEEN_STACKS),
    _of(STACK_WALK, 0x26, (), "StackKeyUser", (*_STACK_OF, pointer("stack_key")), _SEEN_STACKS),
)

# ---------------------------------------------------------------------------------------------------- the rest

_OTHERS = (
    _of(VOLUME, 35, (), "VolumeMapping", (utf16("nt_path"), utf16("dos_path")), _SEEN),
    _of(LOST_EVENT, 32, (), "RTLostEvent", (), _DOCS),
    _of(LOST_EVENT, 33, (), "RTLostBuffer", (), _DOCS),
    _of(LOST_EVENT, 34, (), "RTLostFile", (), _DOCS),
)

SYSTEM_EVENTS: tuple[EventSchema, ...] = (*_PROCESSES, *_THREADS, *_IMAGES, *_IMAGE_IDENTITIES, *_STACKWALKS, *_OTHERS)
