"""The part of `sockscope collect` that judges a traced test run: --fail-on, with its report as text and as JUnit XML."""

import argparse
import contextlib
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from collector.plain import say

if TYPE_CHECKING:
    from collector.gate import Check
    from collector.stages import ImportReport

__all__ = ["add_gate", "verdict_of", "wrong_gate"]

_FAILED, _LIMITED, _NOT_STORED = 4, 3, 1
_XML = b"<?xml"


def add_gate(parser: argparse.ArgumentParser) -> None:
    """Declare the options."""
    gate = parser.add_argument_group("judge a test run", "each kind of finding is named on the overview of a trace that has some")
    gate.add_argument(
        "--fail-on",
        action="extend",
        default=[],
        type=_checks,
        metavar="KIND[=N],…",
        help="fail if this is found, or more than N times (of requests, connections or blocks, as findings count them): overlap, "
        "freed_in_flight, abort, leak, unclosed, …, or any; may be repeated, the last of a kind counts",
    )
    gate.add_argument("--junit", metavar="FILE", help="also write the verdicts to this file, as JUnit XML")


def wrong_gate(args: argparse.Namespace) -> str:
    """What is wrong with how the options go together; empty where nothing is."""
    if args.junit is not None and not args.fail_on:
        return "--junit writes the verdicts of --fail-on: name what shall fail."
    if args.fail_on and (args.follow or args.watch is not None):
        return "--fail-on judges traces that are finished: leave --follow and --watch out."
    return _wrong_report(args.junit, args.files) if args.junit is not None else ""


def _wrong_report(name: str, inputs: Sequence[str]) -> str:
    """Why a report cannot go to a file: it must not take the place of something else."""
    path = Path(name)
    if not path.name:
        return "--junit names the file that the verdicts are written to."
    try:
        if any(Path(file).exists() and path.exists() and path.samefile(file) for file in inputs):
            return f"{name}: this is a trace to collect. Name another file for --junit."
        if path.is_file() and path.stat().st_size and not _starts_as_report(path):
            return f"{name}: there is a file of this name that is no report. Name another file for --junit, or remove it."
    except OSError as error:
        return f"{name}: this file cannot be looked at ({error.strerror}). Name another one for --junit."
    return ""


def _starts_as_report(path: Path) -> bool:
    with path.open("rb") as file:
        return file.read(len(_XML)) == _XML


def verdict_of(args: argparse.Namespace, status: int, reports: "Sequence[ImportReport]", not_stored: Sequence[tuple[str, str]] = ()) -> int:
    """Judge what was stored, say so on stdout, write the file; gives the exit status, `status` where all passed."""
    if not args.fail_on:
        return status
    from collector.gate import judged, junit_xml, report_lines

    verdicts = [verdict for report in reports for verdict in judged(report, args.fail_on)]
    for line in report_lines(verdicts):
        say(line)
    if args.junit is not None and not _write(Path(args.junit), junit_xml(verdicts, not_stored)):
        return _NOT_STORED
    if status == _NOT_STORED:
        return status
    if any(verdict.has_failed for verdict in verdicts):
        return _FAILED
    return _LIMITED if any(verdict.doubt for verdict in verdicts) else status


def _write(path: Path, content: bytes) -> bool:
    """Write a file whole or not at all; says why where it cannot be. A device or a pipe is written to."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        if path.exists() and not path.is_file():
            path.write_bytes(content)
            return True
        part.write_bytes(content)
        part.replace(path)
    except OSError as error:
        with contextlib.suppress(OSError):
            part.unlink(missing_ok=True)
        say(f"{path}: the verdicts cannot be written ({error.strerror}). The traces are stored.", file=sys.stderr)
        return False
    return True


def _checks(text: str) -> "list[Check]":
    from collector.gate import parse_checks

    try:
        return parse_checks(text)
    except ValueError as error:
        raise argparse.ArgumentTypeError(str(error)) from error
