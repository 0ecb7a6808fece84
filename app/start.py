"""Where the console script begins: Ctrl+C while modules are still loaded ends it without a traceback, too."""

__all__ = ["main"]

_INTERRUPTED = 130
"""As shells tell of a program that Ctrl+C has ended."""


def main() -> int:
    """Run the command line of this process; returns the exit status."""
    try:
        from app.cli import main as run

        return run()
    except KeyboardInterrupt:
        return _INTERRUPTED
