"""A bounded memory of what was used last."""

import threading
from typing import Any

__all__ = ["LeastRecent"]


class LeastRecent(dict[bytes, Any]):
    """At most ``size`` entries: the ones that were not looked at for longest go. Threads may share
    it.
    """

    def __init__(self, size: int) -> None:
        super().__init__()
        self.size, self._lock = size, threading.Lock()

    def __getitem__(self, key: bytes) -> Any:
        with self._lock:
            value = super().pop(key)  # what was looked at last stands last
            super().__setitem__(key, value)
            return value

    def __setitem__(self, key: bytes, value: Any) -> None:
        with self._lock:
            super().__setitem__(key, value)
            while len(self) > self.size:
                super().__delitem__(next(iter(self)))
