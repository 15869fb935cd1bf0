"""Counts and times of requests in Prometheus' text format; no name or value in it comes from a person.

Several processes of one service each count what they answer themselves, under a label of their own.
"""

import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """What happened since the process began. Threads may share it.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.request("GET", "/healthz", 200, 0.002)
    >>> [line for line in metrics.text().splitlines() if line.startswith("edfa_requests_total")]
    ['edfa_requests_total{method="GET",route="/healthz",status="200"} 1']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._limited = self._faults = 0

    def request(self, method: str, route: str, status: int, seconds: float, events: Iterable[str] = ()) -> None:
        """Count a request by its route's template; ``events`` are the kinds of what it did in interviews."""
        with self._lock:
            self._requests[method, route, status] += 1
            buckets = self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))
            buckets[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]
            self._events.update(events)
            self._limited += status == 429
            self._faults += status >= 500

    def text(self, interviews: Mapping[str, int] | None = None) -> str:
        """Everything, as Prometheus reads it; ``interviews`` are the numbers of the store, which all share."""
        with self._lock:
            lines = [*self._request_lines(), *self._second_lines(), *self._event_lines()]
        lines += _kind("interviews", "gauge", "Interviews in the store, of all processes.")
        lines += [f'edfa_interviews{{state="{name}"}} {number}' for name, number in (interviews or {}).items()]
        lines += [*_kind("process", "gauge", "The process that answers."), f'edfa_process{{pid="{os.getpid()}"}} 1']
        return "\n".join([*lines, *_memory(), ""])

    def _request_lines(self) -> list[str]:
        lines = _kind("requests_total", "counter", "Requests by route and status.")
        for (method, route, status), number in sorted(self._requests.items()):
            lines.append(f'edfa_requests_total{{method="{method}",route="{route}",status="{status}"}} {number}')
        for name, help_text, number in (
            ("rate_limited_total", "Requests that were too many.", self._limited),
            ("errors_total", "Requests that failed by a fault of the service.", self._faults),
        ):
            lines += [*_kind(name, "counter", help_text), f"edfa_{name} {number}"]
        return lines

    def _second_lines(self) -> list[str]:
        lines = _kind("request_seconds", "histogram", "Seconds until a request was answered.")
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, number in zip((*(f"{bound:g}" for bound in BOUNDS), "+Inf"), buckets, strict=True):
                total += number
                lines.append(f'edfa_request_seconds_bucket{{route="{route}",le="{bound}"}} {total}')
            lines.append(f'edfa_request_seconds_sum{{route="{route}"}} {self._seconds[route]:.6f}')
            lines.append(f'edfa_request_seconds_count{{route="{route}"}} {total}')
        return lines

    def _event_lines(self) -> list[str]:
        lines = _kind(
            "events_total", "counter", "Events of interviews: start (begun), stop (finished), decline, act, …"
        )
        return lines + [f'edfa_events_total{{kind="{kind}"}} {n}' for kind, n in sorted(self._events.items())]


def _kind(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP edfa_{name} {help_text}", f"# TYPE edfa_{name} {kind}"]


def _memory() -> list[str]:
    """The memory of this process, where the system says it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return []
    name = "process_resident_memory_bytes"
    return [f"# TYPE {name} gauge", f"{name} {pages * os.sysconf('SC_PAGE_SIZE')}"]
