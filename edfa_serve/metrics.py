"""Counts and times of requests in Prometheus' text format; no name or value in it comes from a
person.

Several processes of one service each count what they answer themselves, under a label ``process``
of their own; who scrapes several adds them up. Only the interviews come from the store, and are
those of all processes.
"""

import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping

__all__ = ["CONTENT_TYPE", "Metrics"]

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ITS_OWN = ", of this process since it began."
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """What happened since the process began. Threads may share it.

    Parameters
    ----------
    process
        What the process is called; by default, its number. A process that was forked after this
        calls itself anew.

    Examples
    --------
    >>> metrics = Metrics(process="7")
    >>> metrics.request("GET", "/healthz", 200, 0.002)
    >>> [line for line in metrics.text().splitlines() if line.startswith("edfa_requests_total")]
    ['edfa_requests_total{process="7",method="GET",route="/healthz",status="200"} 1']
    """

    def __init__(self, process: str = "") -> None:
        self._process = process
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._limited = self._faults = 0

    def request(
        self, method: str, route: str, status: int, seconds: float, events: Iterable[str] = ()
    ) -> None:
        """Count a request by its route's template; ``events`` are the kinds of what it did in
        interviews.
        """
        with self._lock:
            self._requests[method, route, status] += 1
            buckets = self._buckets.setdefault(route, [0] * (len(BOUNDS) + 1))
            buckets[bisect_left(BOUNDS, seconds)] += 1
            self._seconds[route] += seconds  # type: ignore[assignment]
            self._events.update(events)
            self._limited += status == 429
            self._faults += status >= 500

    def text(self, interviews: Mapping[str, int] | None = None) -> str:
        """Everything, as Prometheus reads it; ``interviews`` are the numbers of the store, which
        all share.
        """
        with self._lock:
            lines = [*self._request_lines(), *self._second_lines(), *self._event_lines()]
        lines += _kind("interviews", "gauge", "Interviews in the store, of all processes.")
        lines += [
            f'edfa_interviews{{state="{name}"}} {number}'
            for name, number in (interviews or {}).items()
        ]
        return "\n".join([*lines, *_memory(self._label), ""])

    @property
    def _label(self) -> str:
        return f'process="{self._process or os.getpid()}"'

    def _request_lines(self) -> list[str]:
        lines = _kind("requests_total", "counter", f"Requests by route and status{ITS_OWN}")
        for (method, route, status), number in sorted(self._requests.items()):
            lines.append(
                f'edfa_requests_total{{{self._label},method="{method}",route="{route}",status="{status}"}} {number}'  # noqa: E501
            )
        for name, help_text, number in (
            ("rate_limited_total", f"Requests that were too many{ITS_OWN}", self._limited),
            (
                "errors_total",
                f"Requests that failed by a fault of the service{ITS_OWN}",
                self._faults,
            ),
        ):
            lines += [*_kind(name, "counter", help_text), f"edfa_{name}{{{self._label}}} {number}"]
        return lines

    def _second_lines(self) -> list[str]:
        lines = _kind(
            "request_seconds", "histogram", f"Seconds until a request was answered{ITS_OWN}"
        )
        for route, buckets in sorted(self._buckets.items()):
            total = 0
            for bound, number in zip(
                (*(f"{bound:g}" for bound in BOUNDS), "+Inf"), buckets, strict=True
            ):
                total += number
                lines.append(
                    f'edfa_request_seconds_bucket{{{self._label},route="{route}",le="{bound}"}} {total}'  # noqa: E501
                )
            lines.append(
                f'edfa_request_seconds_sum{{{self._label},route="{route}"}} '
                f"{self._seconds[route]:.6f}"
            )
            lines.append(f'edfa_request_seconds_count{{{self._label},route="{route}"}} {total}')
        return lines

    def _event_lines(self) -> list[str]:
        lines = _kind(
            "events_total",
            "counter",
            (
                "Events of interviews: start (begun), stop (finished), decline, act and "
                f"others{ITS_OWN}"
            ),
        )
        return lines + [
            f'edfa_events_total{{{self._label},kind="{kind}"}} {n}'
            for kind, n in sorted(self._events.items())
        ]


def _kind(name: str, kind: str, help_text: str) -> list[str]:
    return [f"# HELP edfa_{name} {help_text}", f"# TYPE edfa_{name} {kind}"]


def _memory(label: str) -> list[str]:
    """The memory of this process, where the system says it."""
    try:
        with open("/proc/self/statm", encoding="ascii") as file:  # noqa: PTH123
            pages = int(file.read().split()[1])
    except (OSError, ValueError, IndexError):
        return []
    name = "process_resident_memory_bytes"
    return [f"# TYPE {name} gauge", f"{name}{{{label}}} {pages * os.sysconf('SC_PAGE_SIZE')}"]
