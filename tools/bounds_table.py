"""Writes tests/certification/bounds_50_digits.csv: bounds and p-values in 50 digits, straight from
their definitions.

    python tools/bounds_table.py        (needs mpmath)

Nothing of edfa is used: binomial sums are summed, bounds are found by bisection on the p-value, as
the paper has it.
"""

import csv
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mpmath as mp

mp.mp.dps = 60
LOSSES = {
    1: [0],
    2: [0, 1],
    7: [0, 2, 6],
    23: [0, 1, 5, 17],
    64: [0, 3, 9, 40],
    137: [0, 4, 21],
    333: [2, 30, 100],
}
SEVENTHS = {7: [5, 17, 44], 23: [3, 20, 100], 64: [11, 70, 200], 137: [15, 143]}  # of n * 7 runs
LARGE = {1250: [40, 301], 9973: [655, 1290]}
MUS, DELTAS = [0.003, 0.07, 0.13, 0.27, 0.45, 0.8], [0.1, 0.03, 1e-6]


def binomial(k: int, n: int, mu: mp.mpf) -> mp.mpf:
    term = total = (1 - mu) ** n
    for j in range(k):
        term = term * (n - j) / (j + 1) * mu / (1 - mu)
        total += term
    return total


def entropy(a: mp.mpf, b: mp.mpf) -> mp.mpf:
    return mp.mpf(0) if a == 0 else a * mp.log(a / b)


def p_value(kind: str, lost: int, m: int, n: int, mu: mp.mpf) -> mp.mpf:
    mean, k = mp.mpf(lost) / (n * m), -(-lost // m)
    if kind == "cp":
        return binomial(k, n, mu)
    if mu <= mean:
        return mp.mpf(1)
    far = 2 * (mu - mean) ** 2 if kind == "hb" else entropy(mean, mu) + entropy(1 - mean, 1 - mu)
    return min(mp.e * binomial(k, n, mu), mp.exp(-n * far))


def upper(kind: str, lost: int, m: int, n: int, delta: mp.mpf) -> mp.mpf:
    low, high = mp.mpf(lost) / (n * m), mp.mpf(1)
    for _ in range(180):
        middle = (low + high) / 2
        if p_value(kind, lost, m, n, middle) <= delta:
            high = middle
        else:
            low = middle
    return high


def rows() -> Iterator[tuple[Any, ...]]:
    cases = [(n, 1, lost) for n, losses in (LOSSES | LARGE).items() for lost in losses]
    cases += [(n, 7, lost) for n, losses in SEVENTHS.items() for lost in losses]
    for n, m, lost in cases:
        for kind in ("hb", "hb_kl", "cp") if m == 1 else ("hb", "hb_kl"):
            for mu in MUS:
                yield kind, "p", n, m, lost, mu, p_value(kind, lost, m, n, mp.mpf(mu))
            for delta in DELTAS if n < 1000 else DELTAS[1:2]:
                yield kind, "ucb", n, m, lost, delta, upper(kind, lost, m, n, mp.mpf(delta))


if __name__ == "__main__":
    table = Path(__file__).parents[1] / "tests" / "certification" / "bounds_50_digits.csv"
    with table.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow(["bound", "what", "n", "m", "losses", "at", "value"])
        writer.writerows([*row[:-1], mp.nstr(row[-1], 50)] for row in rows())
