"""The fuzzer: `python -m tests.fuzz TARGET --seconds N [--corpus FOLDER]`; ends with 0 when nothing fell out.

Coverage of the collector's own code guides it (atheris, libFuzzer). An input that makes a target fail is written to the folder of
`--found`, the error goes to stderr, and the exit status is not 0.
"""

import argparse
import sys
import tempfile
from pathlib import Path

__all__ = ["MOST_BYTES", "main"]

MOST_BYTES = 96 << 10
"""More than the seeds have: a chunk of an event log has 64 KB, and only a whole one is read."""
MOST_MEMORY_MB = 4000
LONGEST_SECONDS = 60


def main(argv: list[str]) -> int:
    """Fuzz one target for a while; libFuzzer ends the process itself."""
    from tests.fuzz.targets import TARGETS

    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    parser.add_argument("target", choices=sorted(TARGETS))
    parser.add_argument("--seconds", type=int, default=60)
    parser.add_argument("--corpus", help="a folder that keeps what reached new code; without it, nothing is kept")
    parser.add_argument("--found", default=".", help="a folder for inputs that fail")
    parser.add_argument("--seed", type=int, default=0, help="0: another one each time")
    args = parser.parse_args(argv)
    try:
        import atheris
    except ImportError:
        print("atheris, which guides the fuzzer, is not installed here; it has wheels for Linux o.", file=sys.stderr)
        return 2
    target = TARGETS[args.target]
    corpus = Path(args.corpus or tempfile.mkdtemp())
    corpus.mkdir(parents=True, exist_ok=True)
    for number, seed in enumerate(target.seeds()):
        (corpus / f"seed{number}").write_bytes(seed)
    found = Path(args.found)
    found.mkdir(parents=True, exist_ok=True)

    from tests.fuzz.mutations import mutated

    def mutate(content: bytes, most: int, seed: int) -> bytes:
        if target.is_file and seed % 4:
            content = mutated(content, seed)
        if seed % 3 == 0 or not target.is_file:
            content = atheris.Mutate(content, min(most, len(content) + 256) or 1)
        return content[:most]

    options = [
        f"-max_total_time={args.seconds}",
        f"-max_len={MOST_BYTES}",
        f"-rss_limit_mb={MOST_MEMORY_MB}",
        f"-timeout={LONGEST_SECONDS}",
        f"-artifact_prefix={found}/{target.name}-",
        f"-seed={args.seed}",
        "-print_final_stats=1",
    ]
    atheris.Setup([sys.argv[0], *options, str(corpus)], target.check, custom_mutator=mutate)
    atheris.Fuzz()
    return 0


def _guide() -> None:
    """Have the collector's code counted while it is imported."""
    try:
        import atheris
    except ImportError:
        return
    with atheris.instrument_imports(include=["collector"], exclude=["collector.etlwriter", "collector.store.tables"]):
        import tests.fuzz.targets  # noqa: F401  # imported for the counting


if __name__ == "__main__":
    _guide()
    sys.exit(main(sys.argv[1:]))
