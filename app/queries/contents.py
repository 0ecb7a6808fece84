"""What a trace says about its machine and its people, so that nobody gives one away unknowingly."""

from dataclasses import dataclass

from sqlalchemy import Connection, func, select

from collector.store.tables import THIS_TRACE, TRACE

__all__ = ["Contents", "contents"]

_MASKED = "masked"  # the kind of problem that a masked export has


@dataclass(frozen=True, slots=True)
class Contents:
    """How many of each kind there are; `is_masked` where they are stand-ins."""

    is_masked: bool
    process_names: int
    command_lines: int
    addresses: int
    thread_names: int
    module_paths: int
    function_names: int
    raw_payloads: int

    @property
    def parts(self) -> tuple[tuple[int, str, str], ...]:
        """Those that there are: number, and the word for one and for more."""
        named = (
            (self.process_names, "process name", "process names"), (self.command_lines, "command line", "command lines"),
            (self.addresses, "IP address", "IP addresses"), (self.module_paths, "path of a module", "paths of modules"),
            (self.thread_names, "thread name", "thread names"), (self.function_names, "function name", "function names"),
            (self.raw_payloads, "undecoded record with its bytes", "undecoded records with their bytes"),
        )  # fmt: skip
        return tuple(part for part in named if part[0])


def contents(db: Connection) -> Contents:
    """What the trace contains, each thing counted once by its text."""
    t = TRACE.tables

    def number(table: str, column: str) -> int:
        wanted = t[table].c[column]
        return db.execute(select(func.count(wanted.distinct())).where(t[table].c.trace_id == THIS_TRACE)).scalar_one()

    payloads = t["raw_event"].c.payload
    problem = t["problem"].c
    return Contents(
        is_masked=db.execute(select(problem.n).where(problem.trace_id == THIS_TRACE, problem.kind == _MASKED)).first() is not None,
        process_names=number("process", "image"),
        command_lines=number("process", "command_line"),
        addresses=number("address", "ip"),
        thread_names=number("thread", "name"),
        module_paths=number("module", "file"),
        function_names=number("stack_frame", "symbol"),
        raw_payloads=db.execute(select(func.count(payloads)).where(t["raw_event"].c.trace_id == THIS_TRACE)).scalar_one(),
    )
