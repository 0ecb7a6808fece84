"""Which test modules `pytest --server` leaves out, and why; single tests are left out by `@pytest.mark.folder`.

All others are run. A module of tests is named by its path below tests/, `*` standing for anything.
"""

from fnmatch import fnmatch
from pathlib import Path

__all__ = ["LEFT_OUT", "is_left_out"]

_TESTS = Path(__file__).resolve().parent.parent

LEFT_OUT = {
    "They ask no database of traces: what they test comes before it, or stands beside it.": (
        "fuzz/*", "odd/*", "record/*", "worked/*",
        "test_afd_table.py", "test_api_answers.py", "test_app_urls.py", "test_architecture.py", "test_bench.py", "test_charts_*.py",
        "test_colours.py", "test_decoder*.py", "test_deploy.py", "test_docs.py", "test_embedded.py", "test_etl*.py", "test_event*.py",
        "test_extended.py", "test_filters.py", "test_format.py", "test_groups.py", "test_heaps_*.py", "test_inspect.py",
        "test_inventory.py", "test_js.py", "test_links.py", "test_losses.py", "test_modules.py", "test_netsh_text.py", "test_manual.py",
        "test_ntstatus.py", "test_packages.py", "test_plain.py", "test_problems.py", "test_processes.py", "test_record_words.py",
        "test_rows.py", "test_sockaddr.py", "test_sockets_*.py", "test_sorted_keys.py", "test_source.py", "test_supply.py",
        "test_text_forms.py", "test_threads.py", "test_tracerpt_csv.py", "test_typed.py", "test_xperf_dump.py",
    ),
    "They are about how a trace becomes the file of rows that a server gets, too; server/test_loading.py compares the rows of both.": (
        "test_address_names.py", "test_findings.py", "test_follow.py", "test_heap_io.py", "test_heap_windows.py", "test_invariance.py",
        "test_joining.py", "test_limits.py", "test_machine.py", "test_neighbours.py", "test_pipeline.py", "test_python_api.py",
        "test_rollups.py", "test_sample.py", "test_stacks.py", "test_sums.py", "test_together.py", "test_transport.py", "test_views.py",
        "test_watch.py",
    ),
    "They are about folders and files of SQLite: names, locks, damage, versions, plans, a full disk. server/ tells that of a server.": (
        "faults/*", "test_app_faults.py", "test_app_heavy.py", "test_app_kept.py", "test_backup.py", "test_datasette.py", "test_locks.py",
        "test_migrations.py", "test_one_trace.py", "test_query_plans.py", "test_store_*.py",
    ),
    "They put files where a dashboard collects them, which one of a server does not.": (
        "test_app_uploads.py", "test_arrivals.py", "test_sending*.py",
    ),
    "They start processes of their own, which open folders as folders. test_server_fleet.py and test_dashboards.py have a server's.": (
        "fleet/*", "test_app_workers.py", "test_load.py",
    ),
    "They weigh pages; server/test_same_answers.py compares a server's with a folder's byte by byte.": ("test_page_weight.py",),
    "They are about connections of browsers, whatever the pages are made from.": ("test_connections.py",),
    "They open files in a browser that a verb made; server/test_dashboards.py makes one from a server.": ("test_browser_report.py",),
    "They name a server themselves.": ("server/*",),
}  # fmt: skip


def is_left_out(path: Path) -> bool:
    """Whether a module of tests has nothing to say about a server."""
    name = path.resolve().relative_to(_TESTS).as_posix()
    return any(fnmatch(name, pattern) for patterns in LEFT_OUT.values() for pattern in patterns)
