"""Whether sessions lose events while they run, and what to enlarge so that they do not."""

from collector.record.plan import Kind, Plan
from collector.record.sessions import Counters

__all__ = ["LossWatch"]


class LossWatch:
    """Compares the counters of each session with those before."""

    def __init__(self, plan: Plan) -> None:
        self._plan = plan
        self._last: dict[Kind, Counters] = {}

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
                "the reader is too slow. The file, if one is written, has them."
            )
        return lines

    def _less(self, kind: Kind) -> str:
        """What else makes fewer events."""
        if kind is Kind.HEAP and self._plan.stacks:
            return ", or fewer --stacks"
        return ""

    def total(self) -> int:
        """Events and buffers lost, by the last counters of all sessions."""
        return sum(c.events_lost + c.log_buffers_lost + c.real_time_buffers_lost for c in self._last.values())


def _count(number: int, noun: str) -> str:
    return f"{number:,} {noun}{'' if number == 1 else 's'}"
