"""Names beside clouds of points, placed so that no two overlap."""

from typing import TYPE_CHECKING

import numpy as np
import pandas as pd

if TYPE_CHECKING:
    from matplotlib.axes import Axes

    from edfa.typing import Float64Array

__all__ = ["place_labels"]

HEIGHT, LETTER = 11.0, 5.0  # of a label in points, at the small size of tick labels
FONT_SIZE = 7
POINT = 3.5  # half the size of a marker, in points
RINGS = (9.0, 15.0, 23.0, 33.0, 45.0, 60.0, 78.0, 98.0)  # distances tried, nearest first, in points
ANGLES = np.deg2rad([0, 180, 45, 315, 135, 225, 90, 270])


def place_labels(ax: "Axes", frame: pd.DataFrame) -> None:
    """Name each group of points (columns name, n, risk, colour) once, near its points but not over
    them.

    Positions are tried in rings around the median point, the nearest first; a thin line leads to a
    name that is far. The figure's layout must be known: call its ``draw_without_rendering`` before.
    """
    if frame.empty:
        return
    scale = 72 / ax.figure.dpi  # from pixels to points
    places = frame[["n", "risk"]].to_numpy(dtype=float)
    points = ax.transData.transform(places) * scale
    box = ax.get_window_extent()
    room = np.array([box.x0, box.y0, box.x1, box.y1]) * scale
    placed = [np.array([x - POINT, y - POINT, x + POINT, y + POINT]) for x, y in points]
    for name in sorted(set(frame["name"])):
        own = np.flatnonzero((frame["name"] == name).to_numpy())
        away = ((points[own] - np.median(points[own], axis=0)) ** 2).sum(axis=1)
        chosen = own[np.argsort(away, kind="stable")[0]]
        centre, label = _free_place(points[chosen], str(name), placed, room)
        placed.append(label)
        shift = centre - points[chosen]
        far = np.hypot(*shift) > RINGS[1] + LETTER * len(str(name)) / 2
        text = ax.annotate(
            str(name),
            tuple(places[chosen]),
            tuple(shift),
            textcoords="offset points",
            ha="center",
            va="center",
            fontsize=FONT_SIZE,
            fontweight="bold",
            color=frame["colour"].iloc[chosen],
            arrowprops={"arrowstyle": "-", "lw": 0.5, "color": "#555555", "shrinkB": 2}
            if far
            else None,
            zorder=5,
        )
        text.set_in_layout(False)  # the places were compared in the layout as it is


def _free_place(
    anchor: "Float64Array", name: str, placed: "list[Float64Array]", room: "Float64Array"
) -> "tuple[Float64Array, Float64Array]":
    """Centre and box of a label near ``anchor``: the first that touches nothing, else the one that
    touches least.
    """
    half = np.array([LETTER * len(name) / 2, HEIGHT / 2])
    best, least = None, np.inf
    for distance in RINGS:
        for angle in ANGLES:
            way = np.array([np.cos(angle), np.sin(angle)])
            centre = anchor + way * (distance + half * np.abs(way))
            label = np.concatenate([centre - half, centre + half])
            if (label[:2] < room[:2]).any() or (label[2:] > room[2:]).any():
                continue
            touched = sum(_overlap(label, other) for other in placed)
            if touched < least:
                best, least = (centre, label), touched
            if touched == 0:
                return centre, label
    return best if best is not None else (anchor, np.concatenate([anchor - half, anchor + half]))


def _overlap(a: "Float64Array", b: "Float64Array") -> float:
    """The area that two boxes share."""
    width = min(a[2], b[2]) - max(a[0], b[0])
    height = min(a[3], b[3]) - max(a[1], b[1])
    return float(width * height) if width > 0 and height > 0 else 0.0
