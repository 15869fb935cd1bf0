"""Counts and times of requests in Prometheus' text format; no name or value in it comes from a
person.

``Metrics`` is the main entry. Several processes of one service each count what they answer
themselves, under a label ``process`` of their own; to have the numbers of the service, add them up.
Only the interviews come from the store, and are those of all processes.
"""

import os
import threading
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable, Mapping
from itertools import accumulate

CONTENT_TYPE = "text/plain; version=0.0.4; charset=utf-8"
ITS_OWN = ", of this process since it began."
EVENTS = "Events of interviews: start (begun), stop (finished), decline, act and others"
BOUNDS = (0.005, 0.01, 0.025, 0.05, 0.1, 0.15, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0)  # seconds


class Metrics:
    """What happened since the process began. Threads may share it.

    Examples
    --------
    >>> metrics = Metrics()
    >>> metrics.request("GET", "/healthz", 200, 0.002)
    >>> [line for line in metrics.text({"begun": 3}).splitlines() if "interviews{" in line]
    ['edfa_interviews{state="begun"} 3']
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._requests: Counter[tuple[str, str, int]] = Counter()
        self._buckets: dict[str, list[int]] = {}
        self._seconds: Counter[str] = Counter()
        self._events: Counter[str] = Counter()
        self._limited = self._faults = 0

    def request(
        self, method: str, route: str, status: int, seconds: float, events: Iterable[str] = ()
    ) -> None:
        """Count a request.

        Parameters
        ----------
        method, route, status
            Its method, the template of its route (``-`` if it has none), and the status of its
            response.
        seconds
            How long it took.
        events
            The kinds of events that it caused in interviews.
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
        """Everything, as Prometheus reads it.

        Parameters
        ----------
        interviews
            The numbers of ``InterviewStore.count``, which all processes share.
        """
        own = f'process="{os.getpid()}"'
        with self._lock:
            requests = {
                f'{own},method="{method}",route="{route}",status="{status}"': number
                for (method, route, status), number in sorted(self._requests.items())
            }
            events = {f'{own},kind="{kind}"': n for kind, n in sorted(self._events.items())}
            families = [
                ("requests_total", "counter", f"Requests by route and status{ITS_OWN}", requests),
                (
                    "rate_limited_total",
                    "counter",
                    f"Requests that were too many{ITS_OWN}",
                    {own: self._limited},
                ),
                (
                    "errors_total",
                    "counter",
                    f"Requests that failed by a fault of the service{ITS_OWN}",
                    {own: self._faults},
                ),
                ("events_total", "counter", f"{EVENTS}{ITS_OWN}", events),
            ]
            times = self._times(own)
        stored = {f'state="{name}"': number for name, number in (interviews or {}).items()}
        families.append(
            ("interviews", "gauge", "Interviews in the store, of all processes.", stored)
        )
        lines = []
        for name, kind, about, values in families:
            lines += [f"# HELP edfa_{name} {about}", f"# TYPE edfa_{name} {kind}"]
            lines += [f"edfa_{name}{{{labels}}} {number}" for labels, number in values.items()]
        return "\n".join([*lines, *times, ""])

    def _times(self, own: str) -> list[str]:
        """How many requests of each route were answered within how many seconds."""
        name = "edfa_request_seconds"
        about = f"Seconds until a request was answered{ITS_OWN}"
        lines = [f"# HELP {name} {about}", f"# TYPE {name} histogram"]
        bounds = [*(f"{bound:g}" for bound in BOUNDS), "+Inf"]
        for route, buckets in sorted(self._buckets.items()):
            labels, counts = f'{own},route="{route}"', [*accumulate(buckets)]
            for bound, count in zip(bounds, counts, strict=True):
                lines.append(f'{name}_bucket{{{labels},le="{bound}"}} {count}')
            lines.append(f"{name}_sum{{{labels}}} {self._seconds[route]:.6f}")
            lines.append(f"{name}_count{{{labels}}} {counts[-1]}")
        return lines
