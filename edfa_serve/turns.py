"""Requests take turns: side by side, threads of one process would only take the interpreter from
each other.

A request that waits for another is answered as soon as if both went on slowly, and the first of
them earlier. Requests that take long (a certificate for somebody's wishes, a batch of people) are
not waited for.
"""

import threading
import time
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager

__all__ = ["TURNS", "Turns"]

LONGEST = 0.2  # seconds after which nobody waits any more for the one whose turn it is


class Turns:
    """A lock, first come, first served, that is not waited for when somebody has had it for long.

    A thread that has it may take it again. ``taken`` says whether anybody has it.

    Examples
    --------
    >>> turns = Turns(longest=0.0)
    >>> with turns.take() as first, turns.take() as again:
    ...     first, again
    (True, True)
    """

    def __init__(self, longest: float = LONGEST) -> None:
        self.longest, self.taken = longest, False
        self._lock, self._since, self._thread = threading.Lock(), 0.0, threading.local()
        self._waiting: deque[threading.Lock] = deque()  # each is opened when it is one's turn

    @contextmanager
    def take(self) -> Iterator[bool]:
        """Wait for one's turn; whether it is, or another takes too long to be waited for."""
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
        """Let others have their turn while one waits for something."""
        had = self._release()
        try:
            yield
        finally:
            self._thread.has = had and self._acquire()

    def _acquire(self) -> bool:
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
        had: bool = getattr(self._thread, "has", False)
        self._thread.has = False
        if had:
            with self._lock:
                self.taken, self._since = bool(self._waiting), time.monotonic()
                if self._waiting:
                    self._waiting.popleft().release()  # who came first is next
        return had


TURNS = Turns()
"""Those of this process."""
