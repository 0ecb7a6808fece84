"""Lives of process ids as intervals of record numbers, and how one is found."""

from dataclasses import dataclass

from collector.model.process_events import Deed, ProcessRecord

__all__ = ["Life", "Lives"]


@dataclass(slots=True, eq=False)
class Life:
    """One instance of a process id: records `begin_seq` up to `end_seq`, that one excluded.

    The begin is certain when a start was seen; else it is the end of the life before, or -1 for "before the trace".
    """

    n: int
    pid: int
    begin_seq: int
    first_ns: int
    end_seq: int | None = None
    begin_ticks: int = 0
    first_seq: int | None = None
    over_ns: int | None = None
    """When it was over at the latest; `end_ns` only where the end is known."""
    source: int = 0
    start_ns: int | None = None
    end_ns: int | None = None
    start_seen: bool = False
    end_seen: bool = False
    eprocess: int | None = None
    parent_pid: int | None = None
    image: str | None = None
    command_line: str | None = None
    session: int | None = None
    exit_status: int | None = None
    pointer_size: int | None = None
    is_pointer_size_told: bool = False

    @property
    def is_open(self) -> bool:
        return self.end_seq is None

    def holds(self, seq: int) -> bool:
        return self.begin_seq <= seq and (self.end_seq is None or seq < self.end_seq)

    def learn(self, record: ProcessRecord) -> None:
        """Take what a kernel event says of the process; what was told before stays."""
        self.eprocess = self.eprocess or record.eprocess
        self.parent_pid = self.parent_pid if self.parent_pid is not None else record.parent_pid
        self.image = self.image or record.image
        self.command_line = self.command_line or record.command_line
        self.session = self.session if self.session is not None else record.session
        if record.deed in (Deed.END, Deed.DEFUNCT):
            self.exit_status = record.exit_status
        if record.pointer_size is not None:
            self.pointer_size, self.is_pointer_size_told = record.pointer_size, True

    def saw_pointers(self, smallest: int) -> None:
        """Records of the process had pointers of this size. A 32-bit process on 64-bit Windows writes some of 8 bytes as well, thus 4 wins;
        what the kernel said stands."""
        if not self.is_pointer_size_told and self.pointer_size != 4:
            self.pointer_size = smallest


class Lives:
    """All lives, by number, by process id, and by process object."""

    def __init__(self) -> None:
        self.all: list[Life] = []
        self._by_pid: dict[int, list[Life]] = {}
        self._by_eprocess: dict[int, list[Life]] = {}

    def last(self, pid: int) -> Life | None:
        """The latest life of a process id."""
        lives = self._by_pid.get(pid)
        return lives[-1] if lives else None

    def at(self, pid: int, seq: int) -> tuple[Life | None, Life | None, Life | None]:
        """The life that holds a record; without one, the lives before and behind the gap."""
        after = None
        for life in reversed(self._by_pid.get(pid, ())):
            if life.holds(seq):
                return life, None, after
            if life.begin_seq <= seq:
                return None, life, after
            after = life
        return None, None, after

    def open(self, pid: int, *, after: Life | None, before: Life | None) -> Life:
        """A new life between two others (None: none there), its true begin unknown."""
        begin, first = -1, 0
        if after is not None:
            begin = after.end_seq or 0
            first = after.over_ns if after.over_ns is not None else after.first_ns + 1
        life = Life(len(self.all), pid, begin, first)
        lives = self._by_pid.setdefault(pid, [])
        lives.insert(0 if after is None else lives.index(after) + 1, life)
        self.all.append(life)
        if before is not None:
            life.end_seq, life.over_ns = before.begin_seq, before.first_ns
        return life

    def open_dead(self, pid: int, seq: int, ns: int) -> Life:
        """A life that was over before anything was heard of it: only its process object leads to it."""
        life = Life(len(self.all), pid, -1, ns, end_seq=seq)
        self.all.append(life)
        return life

    def bind(self, life: Life, eprocess: int | None) -> None:
        """The process object of a life."""
        if eprocess and life.eprocess == eprocess:
            lives = self._by_eprocess.setdefault(eprocess, [])
            if life not in lives:
                lives.append(life)

    def of_object(self, pid: int, eprocess: int | None) -> Life | None:
        """The latest life with this process id and this process object."""
        return next((life for life in reversed(self._by_eprocess.get(eprocess or 0, ())) if life.pid == pid), None)

    def by_eprocess(self, eprocess: int, seq: int) -> Life | None:
        """The life with this process object at a record. Behind the end of a life its object still stands for it until another life has
        it: events of its sockets come late."""
        lives = self._by_eprocess.get(eprocess, ())
        holding = [life for life in lives if life.holds(seq)]
        if holding:
            return max(holding, key=lambda life: (life.begin_seq, -(life.end_seq if life.end_seq is not None else 1 << 62)))
        over = [life for life in lives if life.end_seq is not None and life.end_seq <= seq]
        return max(over, key=lambda life: life.end_seq or 0, default=None)
