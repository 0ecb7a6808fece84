"""The commands that record what a trace lacks, in an elevated prompt of Windows; said wherever a view is empty for want of records."""

__all__ = ["HEAP_LINES", "PROCESS_LINES", "RECORD_HEAP", "RECORD_PROCESSES", "RECORD_SOCKETS", "SOCKET_LINES"]

SOCKET_LINES = (
    r"logman start sockets -ets -p Microsoft-Windows-Winsock-AFD 0xffffffffffffffff 5 -o C:\traces\sockets.etl -bs 1024 -nb 64 256",
    "logman stop sockets -ets",
)
"""All socket events: every keyword, level 5, no filter of ids."""

PROCESS_LINES = (
    r"xperf -on PROC_THREAD+LOADER -f C:\traces\kernel.etl",
    "xperf -stop",
    r"xperf -merge C:\traces\kernel.etl C:\traces\sockets.etl C:\traces\all.etl",
)
"""Processes, threads and modules, merged with what was recorded beside."""

HEAP_LINES = (
    r"xperf -on PROC_THREAD+LOADER -f C:\traces\kernel.etl",
    r"xperf -start HeapSession -heap -Pids 1234 -stackwalk HeapAlloc+HeapRealloc+HeapFree+HeapCreate "
    r"-BufferSize 1024 -MinBuffers 128 -MaxBuffers 128 -f C:\traces\heap.etl",
    "xperf -stop HeapSession",
    "xperf -stop",
    r"xperf -merge C:\traces\kernel.etl C:\traces\heap.etl C:\traces\all.etl",
)
"""The heap of one process with stacks and modules, by the function StartHeapTrace that xperf calls."""

RECORD_SOCKETS = " … ".join(SOCKET_LINES)
RECORD_PROCESSES = " … ".join(PROCESS_LINES)
RECORD_HEAP = " … ".join(HEAP_LINES)
