"""A connection to a Dask cluster whose workers can collect: there, of the same version, and at least one."""

import asyncio
import contextlib
import logging
import time
import warnings
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator, Mapping
from typing import Any, TypeVar

from distributed import Client

from collector.errors import CollectCancelled, FleetError
from collector.fleet.orders import is_here, version_here
from collector.stages import program_version

__all__ = ["LOOK_SECONDS", "connected", "differences", "quiet", "unless_cancelled"]

T = TypeVar("T")

CONNECT_SECONDS = 10.0
ANSWER_SECONDS = 60.0
LOOK_SECONDS = 0.1
"""How often it is asked whether to cancel."""
_SECONDS_BETWEEN_LOOKS_FOR_WORKERS = 0.5
_COMPARED = ("python", "dask", "distributed", "msgpack")


@contextlib.asynccontextmanager
async def connected(
    address: str, should_cancel: Callable[[], bool], *, wait_seconds: float, on_note: Callable[[str], None]
) -> AsyncIterator[Client]:
    """A client of the scheduler at an address, which has a worker by then.

    Args:
        wait_seconds: how long a cluster without workers is waited for.

    Raises: FleetError, CollectCancelled.
    """
    client = await _client_of(address, should_cancel)
    try:
        await unless_cancelled(_check_scheduler(client, address), should_cancel)
        await _await_workers(client, address, should_cancel, wait_seconds=wait_seconds, on_note=on_note)
        await unless_cancelled(_check_workers(client, address, on_note), should_cancel)
        yield client
    except OSError as error:
        raise FleetError(f"{address}: the connection to the scheduler was lost ({error}).") from error
    finally:
        await client.close()


async def unless_cancelled(wanted: Awaitable[T], should_cancel: Callable[[], bool]) -> T:
    """Wait for something. Raises CollectCancelled as soon as that is wanted, and what the awaited raises."""
    task = asyncio.ensure_future(wanted)
    try:
        await asyncio.sleep(0)  # it begins, and so does a client that was made for it: Python warns of what never began
        while not task.done():
            if should_cancel():
                raise CollectCancelled("Cancelled. Nothing was stored.")
            await asyncio.wait({task}, timeout=LOOK_SECONDS)
        return task.result()
    finally:
        task.cancel()


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Keep what Dask logs and warns of to itself: whatever concerns the user is said in our words."""
    loggers = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
    levels = [logger.level for logger in loggers]
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", module=r"distributed(\.|$)")
        for logger in loggers:
            logger.setLevel(logging.CRITICAL)
        try:
            yield
        finally:
            for logger, level in zip(loggers, levels, strict=True):
                logger.setLevel(level)


def differences(versions: Mapping[str, Any]) -> str:  # Any: what Dask says of each machine
    """Which packages that matter between machines differ in version, in words; empty where none does."""
    here = versions["client"]["packages"]
    there = [versions["scheduler"]["packages"], *(worker["packages"] for worker in versions["workers"].values())]
    found = []
    for name in _COMPARED:
        others = sorted({str(packages[name]) for packages in there} - {str(here[name])})
        if others:
            found.append(f"{name} {here[name]} here, {', '.join(others)} there")
    return "; ".join(found)


async def _client_of(address: str, should_cancel: Callable[[], bool]) -> Client:
    client = Client(address, asynchronous=True, timeout=CONNECT_SECONDS, set_as_default=False)
    try:
        return await unless_cancelled(_begun(client), should_cancel)
    except BaseException as error:
        await client.close()
        if isinstance(error, TypeError):  # no certificates were configured for an encrypted connection
            raise FleetError(
                f"{address}: an encrypted connection needs certificates. Name them in the configuration of Dask "
                "(distributed.comm.tls) or in DASK_DISTRIBUTED__COMM__TLS__… of the environment."
            ) from error
        if isinstance(error, OSError | ValueError | RuntimeError | MemoryError):  # the last: another program's answer, read as sizes
            raise FleetError(
                f"{address}: no scheduler of Dask can be reached there ({_reason(error)}). "
                "See that it runs, at this address, encrypted (tls://) or not (tcp://) as you name it."
            ) from error
        raise


async def _begun(client: Client) -> Client:
    async with asyncio.timeout(CONNECT_SECONDS):
        begun: Client = await client
    return begun


async def _await_workers(
    client: Client, address: str, should_cancel: Callable[[], bool], *, wait_seconds: float, on_note: Callable[[str], None]
) -> None:
    given_up = time.monotonic() + wait_seconds
    is_said = False
    while not await unless_cancelled(client.nthreads(), should_cancel):
        if time.monotonic() >= given_up:
            raise FleetError(
                f"{address}: the scheduler has no worker, for {wait_seconds:g} s now. Start some: dask worker {address} --nthreads 1"
            )
        if not is_said:
            on_note(f"{address}: the scheduler has no worker yet; waiting {wait_seconds:g} s for one.")
            is_said = True
        await unless_cancelled(asyncio.sleep(_SECONDS_BETWEEN_LOOKS_FOR_WORKERS), should_cancel)


async def _check_scheduler(client: Client, address: str) -> None:
    """See that the scheduler understands orders. Raises FleetError."""
    try:
        await client.run_on_scheduler(is_here)
    except ImportError as error:
        raise FleetError(f"{address}: sockscope is not installed where the scheduler runs ({error}); it is needed there, too.") from error


async def _check_workers(client: Client, address: str, on_note: Callable[[str], None]) -> None:
    """See that the program is the same everywhere. Raises FleetError."""
    own = program_version()
    try:
        answers = await asyncio.wait_for(client.run(version_here, on_error="return"), ANSWER_SECONDS)
    except TimeoutError as error:
        raise FleetError(f"{address}: a worker gives no answer, for {ANSWER_SECONDS:g} s now. See that none hangs.") from error
    for worker, found in sorted(answers.items()):
        if not isinstance(found, str):
            raise FleetError(f"{worker}: this worker cannot run sockscope; see that it is installed there ({found}).")
        if found != own:
            raise FleetError(
                f"{worker}: this worker runs sockscope {found}, and here it is {own}. Install the same version on all machines."
            )
    versions: Any = client.get_versions()  # Any: an awaitable, since the client is asynchronous
    if differ := differences(await versions):
        on_note(f"{address}: versions differ ({differ}). That may go well; if files fail oddly, make them equal.")


def _reason(error: BaseException) -> str:
    if isinstance(error, MemoryError):
        return "what listens there is another program"
    text = str(error).strip().splitlines()
    return text[0].rstrip(".") if text else f"no answer within {CONNECT_SECONDS:g} s"
