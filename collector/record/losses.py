"""Whether sessions, or who reads them in real time, lose events while they run, and what to do so that they do not."""

from collector.record.plan import Kind, Plan
from collector.record.sessions import Counters

__all__ = ["LossWatch"]


class LossWatch:
    """Compares the counters of each session with those before."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._last: dict[Kind, Counters] = {}
        self._unread: dict[Kind, int] = {}

    def lines(self, kind: Kind, now: Counters) -> list[str]:
        """What was lost since the last call, a line for each kind of loss."""
        before = self._last.get(kind)
        self._last[kind] = now
        lines = []
        if (more := now.events_lost - (before.events_lost if before else 0)) > 0:
            lines.append(
                f"{now.name} lost {_count(more, 'event')} ({now.events_lost:,} so far): its buffers were full. "
                f"Next time: --{kind}-buffers {self._plan.buffers[kind].enlarged().spec}{self._less(kind)}."
            )
        if (more := now.log_buffers_lost - (before.log_buffers_lost if before else 0)) > 0:
            lines.append(
                f"{now.name} lost {_count(more, 'buffer')} ({now.log_buffers_lost:,} so far): the disk was too slow, or is full. "
                "Next time: --output on a faster local disk."
            )
        if (more := now.real_time_buffers_lost - (before.real_time_buffers_lost if before else 0)) > 0:
            lines.append(
                f"{now.name} lost {_count(more, 'buffer')} on the way to its reader ({now.real_time_buffers_lost:,} so far): "
                f"it makes more events than can be read in real time. {self._slower(kind)}"
            )
        return lines

    def unread(self, kind: Kind, count: int) -> list[str]:
        """What was delivered of a session and had no room, since the last call; `count` is all of it so far."""
        before, self._unread[kind] = self._unread.get(kind, 0), count
        if count <= before:
            return []
        return [
            f"{self._plan.session_name(kind)}: {_count(count - before, 'event')} had no room ({count:,} so far): "
            f"more come than can be read in real time. {self._slower(kind)}"
        ]

    def behind(self, seconds: float) -> str:
        """That what is read is older than it should be."""
        kind = Kind.HEAP if Kind.HEAP in self._plan.kinds else Kind.WINSOCK
        return f"What is read now happened {seconds:,.0f} s ago: more events come than can be read in real time. {self._slower(kind)}"

    def _less(self, kind: Kind) -> str:
        """What else makes fewer events."""
        if kind is Kind.HEAP and self._plan.stacks:
            return ", or fewer --stacks"
        return ""

    def _slower(self, kind: Kind) -> str:
        """What to do about events that come too fast for real time."""
        if self._plan.keeps_files:
            return "The files have all of it: only what is shown meanwhile lacks them."
        fewer = {Kind.HEAP: "one --pid, fewer --stacks", Kind.WINSOCK: "--level 4", Kind.KERNEL: "--no-kernel"}[kind]
        return f"Next time: --files, which keeps all of it in files, too; or {fewer}."

    def total(self) -> int:
        """Events and buffers that are in no file, by the last counters of all sessions."""
        counters = list(self._last.values())
        lost = sum(c.events_lost + c.log_buffers_lost for c in counters)
        return lost if self._plan.keeps_files else lost + sum(c.real_time_buffers_lost for c in counters) + sum(self._unread.values())

    def in_real_time(self) -> tuple[int, int]:
        """Events and buffers that Windows has lost before they could be read in real time; any thread may ask."""
        counters = list(self._last.values())
        return sum(c.events_lost for c in counters), sum(c.real_time_buffers_lost for c in counters)


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
