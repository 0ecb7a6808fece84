"""Judges traces of test runs: which kinds of findings may not be there, or not that often; the verdict as text and as JUnit XML."""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING
from xml.etree import ElementTree as ET

from collector.plain import plain_line
from collector.words import FINDING_KINDS, HEAP_FINDINGS

if TYPE_CHECKING:
    from collector.stages import ImportReport

__all__ = ["ANY", "KINDS", "NAMES", "Check", "Verdict", "judged", "junit_xml", "parse_checks", "report_lines"]

KINDS = FINDING_KINDS
NAMES: Mapping[str, str] = {"overlap": "buffer_overlap", "abort": "aborted", "leak": "held_growth", "unclosed": "unclosed_sockets"}
"""Short names of some."""
ANY = "any"
"""Stands for all of them together."""
_MOST_GROUPS = 20
"""A rule names so many groups at most: where there are as many, there may be more."""


@dataclass(frozen=True, slots=True)
class Check:
    """How often findings of a kind may occur."""

    kind: str
    allowed: int = 0


@dataclass(frozen=True, slots=True)
class Verdict:
    """What became of one check of one trace."""

    trace: str
    check: Check
    count: int
    is_least: bool
    """There may be more than were counted."""
    found: tuple[str, ...]
    """Each finding in a line, with its page."""
    doubt: str
    """Why the trace cannot show that something did not happen; empty where it can."""

    @property
    def has_failed(self) -> bool:
        """Whether it occurred more often than allowed, or may have."""
        return self.count > self.check.allowed or self.is_least

    def line(self) -> str:
        """The verdict in one line."""
        count = f"{'at least ' if self.is_least else ''}{self.count:,}"
        allowed = f"allowed {self.check.allowed:,}"
        if self.has_failed:
            return f"FAILED  {self.check.kind}: {count}, {allowed}"
        return (
            f"unsure  {self.check.kind}: {count}, {allowed}; {self.doubt}"
            if self.doubt
            else f"passed  {self.check.kind}: {count}, {allowed}"
        )


def parse_checks(text: str) -> list[Check]:
    """Checks as on the command line, `overlap,abort=2`: kinds with how often each may occur, 0 where nothing is said.

    Raises: ValueError that says what is wrong.
    """
    checks = []
    for part in text.split(","):
        name, has_number, number = (word.strip() for word in part.partition("="))
        kind = NAMES.get(name, name)
        if kind != ANY and kind not in KINDS:
            raise ValueError(f"{name!r} is no kind of finding; there are {', '.join((ANY, *NAMES, *KINDS))}")
        if has_number and not (number.isascii() and number.isdecimal() and len(number) < 16):
            raise ValueError(f"{part.strip()!r}: how often {name} may occur is a number from 0")
        checks.append(Check(kind, int(number or 0)))
    return checks


def judged(report: "ImportReport", checks: Iterable[Check]) -> list[Verdict]:
    """The verdict of each check on a trace that was stored. The last check of a kind holds."""
    verdicts = []
    for check in {check.kind: check for check in checks}.values():
        of_kind = [finding for finding in report.findings if check.kind in (ANY, finding.kind)]
        groups = [sum(finding.kind == kind for finding in of_kind) for kind in KINDS]
        count = sum(finding.count for finding in of_kind)
        verdicts.append(
            Verdict(
                trace=f"{report.name} ({report.key})",
                check=check,
                count=count,
                is_least=max(groups) >= _MOST_GROUPS and count <= check.allowed,
                found=tuple(f"{f.title} – /t/{report.key}/{f.link or ''}" for f in of_kind),
                doubt=_doubt(report, check.kind),
            )
        )
    return verdicts


def _doubt(report: "ImportReport", kind: str) -> str:
    if report.is_limited:
        return "records were lost or damaged, so that more may have happened"
    if not report.counts["allocation"] and (kind in HEAP_FINDINGS or kind == ANY):
        return "no heap was recorded"
    if not report.counts["socket"] and kind not in HEAP_FINDINGS:
        return "no socket was recorded"
    return ""


def report_lines(verdicts: Sequence[Verdict]) -> list[str]:
    """The verdicts as text, with what was found below each that failed."""
    lines: list[str] = []
    for verdict in verdicts:
        lines.append(verdict.line())
        if verdict.has_failed:
            lines += [f"        {line}" for line in verdict.found]
    return lines


def junit_xml(verdicts: Sequence[Verdict], not_stored: Sequence[tuple[str, str]] = ()) -> bytes:
    """The verdicts as JUnit XML: a suite for each trace, a test for each check; `not_stored` are files and why they are no traces.

    A check that nothing fails of, but that the trace cannot answer, counts as skipped.
    """
    root = ET.Element("testsuites", name="sockscope")
    for trace in dict.fromkeys(verdict.trace for verdict in verdicts):
        own = [verdict for verdict in verdicts if verdict.trace == trace]
        suite = _suite(root, trace, tests=len(own), failures=sum(v.has_failed for v in own),
                       skipped=sum(bool(v.doubt) and not v.has_failed for v in own))  # fmt: skip
        for verdict in own:
            test = _test(suite, trace, verdict.check.kind)
            if verdict.has_failed:
                failure = ET.SubElement(test, "failure", message=plain_line(verdict.line()), type=verdict.check.kind)
                failure.text = "\n".join(map(plain_line, verdict.found))
            elif verdict.doubt:
                ET.SubElement(test, "skipped", message=verdict.doubt)
    for file, why in not_stored:
        ET.SubElement(_test(_suite(root, file, tests=1, errors=1), file, "collect"), "error", message=plain_line(why))
    for total in ("tests", "failures", "errors", "skipped"):
        root.set(total, str(sum(int(suite.get(total, 0)) for suite in root)))
    ET.indent(root)
    xml: bytes = ET.tostring(root, encoding="utf-8", xml_declaration=True)
    return xml + b"\n"


def _suite(root: ET.Element, name: str, *, tests: int, failures: int = 0, errors: int = 0, skipped: int = 0) -> ET.Element:
    counts = {"tests": tests, "failures": failures, "errors": errors, "skipped": skipped}
    return ET.SubElement(root, "testsuite", {"name": plain_line(name)} | {key: str(count) for key, count in counts.items()})


def _test(suite: ET.Element, trace: str, name: str) -> ET.Element:
    return ET.SubElement(suite, "testcase", classname=plain_line(trace), name=name)
