"""The pages of a trace in the order of the navigation. `link` is the path below /t/KEY/."""

from dataclasses import dataclass

__all__ = ["SECTIONS", "Group", "Section"]


@dataclass(frozen=True, slots=True)
class Section:
    """One entry of the navigation; `name` is what a page of it has as `section`."""

    name: str
    title: str
    link: str


@dataclass(frozen=True, slots=True)
class Group:
    """Entries that belong together."""

    title: str
    sections: tuple[Section, ...]


SECTIONS = (
    Group(
        "The trace",
        (
            Section("overview", "Overview", ""),
            Section("answers", "Questions", "answers"),
            Section("trust", "Trust", "trust"),
            Section("processes", "Processes", "processes"),
            Section("events", "Events", "events"),
            Section("notes", "Notes", "notes"),
        ),
    ),
    Group(
        "Sockets",
        (
            Section("sockets", "Sockets", "sockets"),
            Section("operations", "Operations", "operations"),
            Section("errors", "Errors", "errors"),
            Section("aborts", "Aborts", "aborts"),
            Section("sends", "Sends", "sends"),
            Section("stalls", "Stalls", "stalls"),
            Section("overlaps", "Overlaps", "overlaps"),
            Section("in-flight-frees", "Freed in flight", "in-flight-frees"),
            Section("listeners", "Listeners", "listeners"),
            Section("ports", "Ports", "ports"),
            Section("drops", "Drops", "drops"),
            Section("polls", "Polls", "polls"),
        ),
    ),
    Group(
        "Memory",
        (
            Section("heap", "Heap", "heap"),
            Section("allocations", "Allocations", "allocations"),
            Section("stacks", "Stacks", "stacks"),
        ),
    ),
)
