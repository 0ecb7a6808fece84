"""A PostgreSQL server of the tests' own: Debian's programs in a temporary folder, as an unprivileged user, on a socket of that folder.

It ends with the process that started it, however that ends: another process waits for that, stops the server and removes the folder.
"""

import os
import pwd
import shutil
import subprocess
import tempfile
from collections.abc import Mapping, Sequence
from pathlib import Path

__all__ = ["Cluster", "programs"]

_SETTINGS = {"listen_addresses": "", "max_connections": "40", "timezone": "UTC", "lc_messages": "C"}
_QUICK = {
    "fsync": "off",
    "full_page_writes": "off",
    "shared_buffers": "32MB",
    "autovacuum": "off",
}
"""For tests: what outlives the machine's end does not matter to them."""
_PORT = 5432
_WHEN_INPUT_ENDS = 'cat >/dev/null; folder="$1"; shift; "$@" >/dev/null 2>&1; rm -rf "$folder"'
_WHO_MAY_ENTER = "local all keyed scram-sha-256\nlocal all all trust\n"
"""The role `keyed` needs a password; others, in the tests' own folder, do not."""


def programs() -> Path | None:
    """The folder of the newest PostgreSQL that is installed; None where there is none."""
    found = [path.parent for path in Path("/usr/lib/postgresql").glob("*/bin/postgres")]
    if found:
        return max(found, key=lambda path: int(path.parent.name))
    other = shutil.which("postgres")
    return Path(other).parent if other and shutil.which("initdb") else None


class Cluster:
    """A server in a folder of its own; `close` ends it and removes the folder."""

    def __init__(self, bin_folder: Path, *, settings: Mapping[str, str] = _QUICK) -> None:
        self._bin = bin_folder
        self._user = _unprivileged()
        self.folder = Path(tempfile.mkdtemp(prefix="ss-pg-"))  # the path of a socket must be short
        if self._user:
            account = pwd.getpwnam(self._user)
            os.chown(self.folder, account.pw_uid, account.pw_gid)
        self.folder.chmod(0o755)
        self._data = self.folder / "data"
        self._watcher = self._watched()
        self._run("initdb", "-D", str(self._data), "-U", "owner", "--auth=trust", "--encoding=UTF8", "--locale=C", "--no-sync")
        lines = [f"{name} = '{value}'\n" for name, value in {**_SETTINGS, **settings, "unix_socket_directories": str(self.folder)}.items()]
        self._run("tee", "-a", str(self._data / "postgresql.conf"), given="".join(lines))
        self._run("tee", str(self._data / "pg_hba.conf"), given=_WHO_MAY_ENTER)
        self.start()

    def start(self) -> None:
        """Start the server; it answers afterwards."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "120", "-l", str(self.folder / "log"), "-o", f"-p {_PORT}", "start")

    def stop(self, mode: str = "fast") -> None:
        """Stop the server; `immediate` is as if it had been killed."""
        self._run("pg_ctl", "-D", str(self._data), "-w", "-t", "120", "-m", mode, "stop")

    def is_running(self) -> bool:
        """Whether the server runs."""
        return (self._data / "postmaster.pid").exists()

    def restart(self) -> None:
        """Start the server again after it was stopped."""
        if self.is_running():
            self.stop()
        self.start()

    def url(self, database: str, user: str = "owner") -> str:
        """The address of a database of it, as `--database` takes it."""
        return f"postgresql://{user}@/{database}?host={self.folder}&port={_PORT}"

    def sql(self, statement: str, database: str = "postgres", user: str = "owner") -> list[list[str]]:
        """Run one statement as psql does; the rows of its result as text."""
        answer = self._run(
            "psql", "-X", "-q", "-A", "-t", "-F", "\x1f", "-v", "ON_ERROR_STOP=1", "-h", str(self.folder), "-p", str(_PORT), "-U", user,
            "-d", database, "-c", statement,
        )  # fmt: skip
        return [line.split("\x1f") for line in answer.splitlines()]

    def program(self, name: str, *words: str, given: str = "") -> str:
        """Run a client program as the owner; what it says."""
        return self._run(name, "-h", str(self.folder), "-p", str(_PORT), "-U", "owner", *words, given=given)

    def close(self) -> None:
        """End the server and remove its folder."""
        self._watcher.communicate(timeout=300)

    def _watched(self) -> subprocess.Popen[bytes]:
        """The process that ends the server when its input ends, with `close` or with this process.

        What is sent to this process's group, as by Ctrl+C, does not reach it.
        """
        stop = self._command("pg_ctl", "-D", str(self._data), "-w", "-t", "120", "-m", "immediate", "stop")
        command = ("sh", "-c", _WHEN_INPUT_ENDS, "sh", str(self.folder), *stop)
        return subprocess.Popen(command, stdin=subprocess.PIPE, cwd="/", start_new_session=True)

    def _command(self, program: str, *words: str) -> Sequence[str]:
        """A command line of a program of PostgreSQL, as the user who may run it."""
        own = self._bin / program
        command = (str(own) if own.exists() else program, *words)
        if self._user:
            return "setpriv", "--reuid", self._user, "--regid", str(pwd.getpwnam(self._user).pw_gid), "--clear-groups", *command
        return command

    def _run(self, program: str, *words: str, given: str = "") -> str:
        # The server inherits what is not a file: with a pipe for its errors, reading that would wait for the server's end.
        with tempfile.TemporaryFile("w+") as out, tempfile.TemporaryFile("w+") as asked:
            asked.write(given)
            asked.seek(0)
            done = subprocess.run(
                self._command(program, *words),
                stdin=asked,
                stdout=out,
                stderr=subprocess.STDOUT,
                cwd="/",
                timeout=300,
                env=os.environ | {"LC_ALL": "C"},
            )
            out.seek(0)
            said = out.read()
        if done.returncode:
            raise RuntimeError(f"{program} failed: {said}")
        return said


def _unprivileged() -> str | None:
    """The user as whom the server runs: PostgreSQL refuses root."""
    if os.geteuid():
        return None
    for name in ("postgres", "nobody"):
        try:
            pwd.getpwnam(name)
        except KeyError:
            continue
        return name
    return None
