"""Requests take turns: threads of one process side by side would only take the interpreter from
each other.

``TURNS`` has the turns of this process. With turns, each request is answered no later than if all
went on side by side, and most are answered earlier. Requests that take long (a certificate for
somebody's wishes, a batch of people) are not waited for.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

MAX_WAIT_SECONDS = 0.2  # seconds after which nobody waits any more for the one whose turn it is


class Turns:
    """A lock, first come, first served, that is not waited for when it has been held for long.

    A thread that has it may take it again.

    Parameters
    ----------
    longest
        Seconds after which nobody waits any more for the thread that has it.

    Attributes
    ----------
    taken : bool
        Whether any thread has it.

    Examples
    --------
    >>> turns = Turns(longest=0.0)
    >>> with turns.take() as first, turns.take() as again:
    ...     first, again
    (True, True)
    """

    def __init__(self, longest: float = MAX_WAIT_SECONDS) -> None:
        self.longest, self.taken = longest, False
        self._lock, self._since, self._thread = threading.Lock(), 0.0, threading.local()
        self._waiting: deque[threading.Lock] = deque()  # each is opened when it is one's turn

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Wait for a turn, and end it with the block.

        Yields
        ------
        bool
            Whether it is the turn of this thread; otherwise another takes too long to be waited
            for.
        """
        if getattr(self._thread, "has", False):
            yield True
            return
        self._thread.has = self._acquire()
        try:
            yield self._thread.has
        finally:
            self._release()

    @contextmanager
    def pause(self) -> Iterator[None]:
        """Let others have their turn during the block, in which this thread only waits.

        A thread that had its turn waits for it again at the end.
        """
        had = self._release()
        try:
            yield
        finally:
            self._thread.has = had and self._acquire()

    def _acquire(self) -> bool:
        """Wait for the turn of this thread; whether it has come in time."""
        with self._lock:
            now = time.monotonic()
            if not self.taken:
                self.taken, self._since = True, now
                return True
            left, turn = self._since + self.longest - now, threading.Lock()
            turn.acquire()
            self._waiting.append(turn)
        if turn.acquire(timeout=max(left, 0.0)):
            return True
        with self._lock:
            if turn not in self._waiting:  # it came just now
                return True
            self._waiting.remove(turn)
            return False

    def _release(self) -> bool:
        """End the turn of this thread, if it has it, and begin that of the first who waits."""
        had: bool = getattr(self._thread, "has", False)
        self._thread.has = False
        if had:
            with self._lock:
                self.taken, self._since = bool(self._waiting), time.monotonic()
                if self._waiting:
                    self._waiting.popleft().release()  # who came first is next
        return had


TURNS = Turns()
"""The turns of this process."""
