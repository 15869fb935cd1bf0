"""Old interviews are deleted by themselves, as long as the service runs."""

import asyncio
import logging
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress

from starlette.concurrency import run_in_threadpool

from edfa.errors import EdfaError
from edfa_serve.settings import WebSettings
from edfa_serve.store import InterviewStore

__all__ = ["forget_old"]

LOG = logging.getLogger("edfa_serve")
SECONDS = 3600.0


@asynccontextmanager
async def forget_old(
    store: InterviewStore, settings: WebSettings, seconds: float = SECONDS
) -> AsyncIterator[None]:
    """While the block runs, delete interviews that are older than the settings keep them; at once,
    then every hour.

    Several processes do so at different times; that two do is harmless.
    """
    task = asyncio.create_task(_forget(store, settings, seconds))
    try:
        yield
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


async def _forget(store: InterviewStore, settings: WebSettings, seconds: float) -> None:
    while True:
        try:
            gone = await run_in_threadpool(
                store.expire, settings.keep_unfinished, settings.keep_finished
            )
            if gone:
                LOG.info("expired=%d", gone)
        except EdfaError as error:  # the database is away; the next time it may be back
            LOG.warning("expiry failed: %s", type(error).__name__)
        await asyncio.sleep(seconds * random.uniform(0.9, 1.1))  # noqa: S311
