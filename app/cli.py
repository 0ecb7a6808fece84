"""The command line: the collector's verbs, and those that need the dashboard. Imports wait until a verb runs, so `--help` is quick."""

import argparse
import gc
import importlib.util
import os
import secrets
import socket
import sys
import webbrowser
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING

from collector.cli import add_verbs, new_parser, run
from collector.errors import StoreError, StoreReadOnly
from collector.plain import say
from collector.verbs.arguments import (
    Verbs,
    add_database,
    add_times,
    folder_of,
    new_verb,
    output_path,
    refusal,
    socket_of,
    store_of,
    whole_trace,
)

if TYPE_CHECKING:
    from collector.store.stores import TraceStore

__all__ = ["main"]

TOKEN_VARIABLE = "SOCKSCOPE_TOKEN"
VIEW_VARIABLE = "SOCKSCOPE_VIEW_TOKEN"
SAMPLE_NAME = "sample.etl"
_MOST_WORKERS = 32
_MOST_GIB = 1_000_000
_OF_LINKS = frozenset("0123456789abcdefABCDEFxX@-")
_BACKLOG = 512  # connections that wait to be taken; a browser opens six at once

SERVE_EXAMPLE = """example:
  sockscope serve --open
      shows the traces of the database in the browser, at http://127.0.0.1:8350/ unless --port says otherwise"""

DEMO_EXAMPLE = """example:
  sockscope demo
      writes the sample trace, collects it, and serves it; the printed address opens its overview"""


REPORT_EXAMPLE = """example:
  sockscope report fd96715a3a6d --socket 0xffffe000a1b2c3d4@1500000 -o reset.html
      the page of this socket with its timeline, records and notes, as one file that opens in any browser, without a server or a network

  sockscope report fd96715a3a6d --process 4312@3400 --heap 0x1e54a2b0000@524689700 --from 10s --to 20s
      what a heap did in this range; without --heap all heaps of the process"""


def main(argv: Sequence[str] | None = None) -> int:
    """Run one command line; returns the exit status."""
    parser, verbs = new_parser()
    _add_serve(verbs)
    add_verbs(verbs)
    _add_demo(verbs)
    _add_report(verbs)
    return run(parser, argv)


def _add_serve(verbs: Verbs) -> None:
    parser = new_verb(verbs, "serve", "show the database in the browser", SERVE_EXAMPLE)
    add_database(parser)
    _add_server(parser)
    parser.set_defaults(run=_serve)


def _add_demo(verbs: Verbs) -> None:
    parser = new_verb(verbs, "demo", "make the sample trace, collect it and show it", DEMO_EXAMPLE)
    parser.add_argument("--no-serve", action="store_true", help="stop when the trace is collected")
    add_database(parser)
    _add_server(parser)
    parser.set_defaults(run=_demo)


def _add_server(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--host", default="127.0.0.1", help="address to listen on (default: 127.0.0.1)")
    parser.add_argument("--port", type=int, default=8350, help="port to listen on, 0 for any free one (default: 8350)")
    parser.add_argument(
        "--workers",
        type=_workers,
        default=1,
        metavar="N",
        help=f"processes that make pages, 1 to {_MOST_WORKERS} (default: 1); several take no traces from browsers",
    )
    parser.add_argument("--open", action="store_true", help="open the page in the browser")
    parser.add_argument(
        "--token",
        help=f"demand this from everybody; default: ${TOKEN_VARIABLE}, and one is made up where other machines can reach the server",
    )
    parser.add_argument(
        "--view-token",
        nargs="?",
        const="",
        metavar="TOKEN",
        help=f"a second token, for links that only show: no notes, no uploads; made up where none is named; default: ${VIEW_VARIABLE}",
    )
    parser.add_argument("--allow-host", action="append", default=[], metavar="NAME", help="another name by which the server may be called")
    parser.add_argument(
        "--uploads",
        action=argparse.BooleanOptionalAction,
        default=None,
        help="let browsers send traces, or not (default: only where no other machine can reach the server)",
    )
    parser.add_argument(
        "--upload-limit",
        type=_gibibytes,
        default=8,
        metavar="GIB",
        help="size limit of a trace that is sent, packed or unpacked (default: 8)",
    )
    parser.add_argument(
        "--base-path",
        "--root-path",
        dest="root_path",
        default="",
        metavar="PATH",
        help="path under which a proxy shows the server, such as /sockscope",
    )
    parser.add_argument("--metrics", action="store_true", help='numbers for Prometheus at /metrics; needs pip install "sockscope[metrics]"')
    parser.add_argument("--log-requests", action="store_true", help="write a line for each request to stderr")
    parser.add_argument("--log-format", choices=("text", "json"), default="text", help="how lines of the log look (default: text)")
    parser.add_argument(
        "--forwarded-allow-ips",
        type=_addresses,
        default=(),
        metavar="ADDRESSES",
        help="proxies whose X-Forwarded-For, -Proto and -Host are believed, separated by commas: 10.0.0.5 or 10.0.0.0/8 (default: none)",
    )


def _serve(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    from collector.store.engine import TraceFolder

    store = store_of(args)
    if not (store.root.exists() if isinstance(store, TraceFolder) else store.has_catalog()):
        say(f"sockscope serve: {store.title}: there are no traces here yet.", file=sys.stderr)
    _bring_up_to_date(store)
    return _listen(args, store, should_cancel)


def _demo(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    from collector.sample import write_sample
    from collector.source import Source
    from collector.verbs.storing import collect_source, summary

    folder = folder_of(args)
    folder.make()
    path = folder.root / SAMPLE_NAME
    say(f"Writing the sample trace to {path}", file=sys.stderr)
    try:
        write_sample(path)
    except OSError as error:
        raise StoreError(f"{path}: the sample trace cannot be written ({error.strerror}).") from error
    with Source.open(path) as source:
        report = collect_source(source, folder, should_cancel)
    say(summary(report))
    if args.no_serve:
        return 3 if report.is_limited else 0
    return _listen(args, folder, should_cancel, page=f"t/{report.key}")


def _add_report(verbs: Verbs) -> None:
    parser = new_verb(verbs, "report", "write the page of a socket or heap as one HTML file", REPORT_EXAMPLE)
    parser.add_argument("trace", metavar="TRACE", help="key, beginning of a key, or name")
    about = parser.add_mutually_exclusive_group(required=True)
    about.add_argument("--socket", metavar="SOCKET", type=socket_of, help="a socket by its link, 0xENDPOINT@NS")
    about.add_argument("--process", metavar="PROCESS", help="the heap of a process by its link, PID@NS or PID")
    parser.add_argument("--heap", metavar="HEAP", help="one heap of the process by its link, 0xHEAP@NS")
    add_times(parser)
    parser.add_argument("-o", "--output", metavar="FILE", help="file or folder to write to; default: a name of its own in this folder")
    parser.add_argument("--mask", action="store_true", help="put stand-ins for addresses, names and command lines, as export does")
    parser.add_argument("--force", action="store_true", help="replace a file that is there")
    add_database(parser)
    parser.set_defaults(run=_report)


def _report(args: argparse.Namespace, should_cancel: Callable[[], bool]) -> int:
    from collector.store.catalog import Catalog
    from collector.store.copying import placed

    if args.heap and not args.process:
        say("sockscope report: --heap is one of a process; name it with --process.", file=sys.stderr)
        return 2
    if wrong := next((word for word in (args.process, args.heap) if word is not None and not set(word) <= _OF_LINKS), None):
        say(f"sockscope report: {wrong!r} is no link: write PID@NS for a process, 0xHEAP@NS for a heap.", file=sys.stderr)
        return 2
    if args.from_ns is not None and args.to_ns is not None and args.from_ns > args.to_ns:
        say("sockscope report: --to is before --from; give a range that runs forward.", file=sys.stderr)
        return 2
    folder = store_of(args, must_exist=True)
    entry = whole_trace(Catalog.readable(folder).find(args.trace), folder, then="report on it")
    parts = ["sockets", args.socket.text] if args.socket else ["heap", args.process, *([args.heap] if args.heap else [])]
    name = "-".join([entry.key, *parts]).replace("@", "-")
    target = output_path(args.output, f"{name}.html")
    if refused := refusal(target, folder, force=args.force):
        say(f"sockscope report: {refused}", file=sys.stderr)
        return 1
    query = {name: str(ns) for name, ns in (("from", args.from_ns), ("to", args.to_ns)) if ns is not None}
    body = _report_of(folder, entry.key, parts, query, should_cancel, is_masked=args.mask)
    with placed(target) as part:
        part.write_bytes(body)
    say(f"Wrote {target} ({len(body):,} bytes).")
    return 0


def _report_of(
    folder: "TraceStore", key: str, parts: Sequence[str], query: dict[str, str], should_cancel: Callable[[], bool], *, is_masked: bool
) -> bytes:
    """The report, of a masked copy where that is asked for. Raises StoreError."""
    from tempfile import TemporaryDirectory

    from app.reporting import NoReport, report_of

    try:
        if not is_masked:
            return report_of(folder.address, "/".join(["", "t", key, *parts]), query)
        from collector.store.catalog import Catalog
        from collector.store.copying import copy_trace
        from collector.store.engine import TraceFolder
        from collector.store.masking import MASKED_KEY, mask_file

        within = folder.root if isinstance(folder, TraceFolder) else folder.unpacking_place()
        with TemporaryDirectory(prefix=".report-", dir=within) as place:
            masked = TraceFolder(place)
            masked.make()
            secret = secrets.token_bytes(32)
            copy_trace(folder, key, masked.trace_path(key + MASKED_KEY), should_cancel, lambda path: mask_file(path, secret, should_cancel))
            Catalog(masked).settle()
            return report_of(masked.root, "/".join(["", "t", key + MASKED_KEY, *parts]), query)
    except NoReport as error:
        raise StoreError(f"{error} Nothing was written.") from error


def _bring_up_to_date(store: "TraceStore") -> None:
    """Settle traces of dead collectors and update databases of older versions; what may not be written is read as it is.

    Raises StoreError where nothing of the folder can be read.
    """
    from collector.store.catalog import Catalog
    from collector.store.engine import TraceFolder
    from collector.store.migrate import upgrade_trace

    try:
        Catalog(store).settle()
    except StoreReadOnly as error:
        store.catalog()  # raises what keeps it from being read, too
        if isinstance(store, TraceFolder):  # the dashboard of a server is to have a role that may not
            say(f"sockscope serve: {error} The traces are shown as they are.", file=sys.stderr)
    except StoreError as error:
        store.catalog()
        say(f"sockscope serve: {error} The traces are shown as they are.", file=sys.stderr)
    if not isinstance(store, TraceFolder):
        return
    for key in store.trace_keys():
        try:
            upgrade_trace(store, key)
        except StoreError as error:
            say(f"sockscope serve: {error}", file=sys.stderr)


def _listen(args: argparse.Namespace, store: "TraceStore", should_cancel: Callable[[], bool], *, page: str = "") -> int:
    """Serve until asked to stop."""
    gc.disable()  # nothing of what is loaded is garbage, and looking for some is a tenth of the start
    try:
        from app.main import create_app
        from app.serving import serve_alone, serve_by_several
        from app.settings import Settings, SettingsError, is_loopback
        from collector.store.engine import TraceFolder
    finally:
        gc.enable()

    if args.workers > 1 and args.uploads:
        say(f"sockscope {args.verb}: --uploads needs --workers 1: one process alone knows what is being collected.", file=sys.stderr)
        return 2
    if args.uploads and not isinstance(store, TraceFolder):
        say(
            f"sockscope {args.verb}: --uploads needs a folder of traces: a database server gets them by sockscope collect.",
            file=sys.stderr,
        )
        return 2
    if args.metrics and importlib.util.find_spec("prometheus_client") is None:
        say(f'sockscope {args.verb}: --metrics needs a package: pip install "sockscope[metrics]"', file=sys.stderr)
        return 2
    asked = args.view_token if args.view_token is not None else os.environ.get(VIEW_VARIABLE)
    needs_token = asked is not None or not is_loopback(args.host)
    token = args.token or os.environ.get(TOKEN_VARIABLE) or (secrets.token_urlsafe(24) if needs_token else None)
    settings = Settings(
        database=store.address,
        host=args.host,
        port=args.port,
        token=token,
        view_token=secrets.token_urlsafe(24) if asked == "" else asked,
        allowed_hosts=tuple(args.allow_host),
        trusted_proxies=args.forwarded_allow_ips,
        root_path=args.root_path,
        uploads=args.uploads if args.workers == 1 else False,
        upload_bytes=int(args.upload_limit * 2**30),
        has_metrics=args.metrics,
        logs_requests=args.log_requests,
        log_format=args.log_format,
    )
    try:
        app = create_app(settings)
    except SettingsError as error:
        say(f"sockscope {args.verb}: {error}", file=sys.stderr)
        return 2
    try:
        listener = socket.create_server((args.host, args.port), family=_family(args.host), backlog=_BACKLOG)
    except OSError as error:
        say(
            f"sockscope {args.verb}: {args.host}:{args.port} cannot be listened on ({error.strerror}). Choose another --port.",
            file=sys.stderr,
        )
        return 1
    host, port = listener.getsockname()[:2]
    shown = f"[{host}]" if ":" in host else host
    place = f"http://{shown}:{port}{settings.base_path}/{page}"
    address = place + (f"?token={token}" if token else "")
    say(f"sockscope is at {address}  (Ctrl+C stops it)", flush=True)
    if settings.view_token:
        say(f"only to look: {place}?token={settings.view_token}", flush=True)
    if args.open:
        webbrowser.open(address)
    if args.workers > 1:
        return serve_by_several(settings, listener, args.workers, should_cancel)
    serve_alone(app, settings, listener, should_cancel)
    return 0


def _workers(text: str) -> int:
    if not text.isascii() or not text.isdigit() or not 1 <= int(text) <= _MOST_WORKERS:
        raise argparse.ArgumentTypeError(f"{text}: a number of processes from 1 to {_MOST_WORKERS}")
    return int(text)


def _gibibytes(text: str) -> float:
    try:
        size = float(text)
    except ValueError:
        size = 0.0
    if not 0 < size <= _MOST_GIB:  # nor nan
        raise argparse.ArgumentTypeError(f"{text}: a size in GiB above 0, at most {_MOST_GIB:,}")
    return size


def _addresses(text: str) -> tuple[str, ...]:
    return tuple(word.strip() for word in text.split(",") if word.strip())


def _family(host: str) -> socket.AddressFamily:
    return socket.AF_INET6 if ":" in host else socket.AF_INET


if __name__ == "__main__":
    sys.exit(main())
