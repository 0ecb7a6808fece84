"""The commands that record what a trace lacks; said wherever a view is empty for want of records."""

__all__ = ["RECORD_HEAP", "RECORD_PROCESSES", "RECORD_SOCKETS"]

RECORD_SOCKETS = (
    r"logman start sockets -p Microsoft-Windows-Winsock-AFD 0xffffffffffffffff 5 -o C:\t\sockets.etl -bs 1024 -nb 64 256 -ets"
    " … logman stop sockets -ets"
)
"""All socket events: every keyword, level 5, no filter of ids."""

RECORD_PROCESSES = (
    r"xperf -on PROC_THREAD+LOADER -f C:\t\kernel.etl … xperf -stop; xperf -merge C:\t\kernel.etl C:\t\sockets.etl C:\t\all.etl"
)
"""Processes, threads and modules, merged with what was recorded beside."""

RECORD_HEAP = (
    r"xperf -on PROC_THREAD+LOADER -f C:\t\kernel.etl; xperf -start HeapSession -heap -Pids 1234 "
    r"-stackwalk HeapAlloc+HeapRealloc+HeapCreate -BufferSize 1024 -MinBuffers 128 -MaxBuffers 128 -f C:\t\heap.etl … xperf -stop HeapSession; xperf -stop; "
    r"xperf -merge C:\t\kernel.etl C:\t\heap.etl C:\t\all.etl"
)
"""The heap of one process with stacks and modules, by the function StartHeapTrace that xperf calls."""
