"""The walk against Algorithm 2's loops; what each bound saves; hb_p_value against MAPIE's (in .venv-peers)."""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
from report import best, table, write

from edfa.certification import Records, RecourseCertifier
from edfa.certification.bounds import p_value
from edfa.certification.records import Runs
from edfa.certification.risk_curve import trace
from edfa.certification.simulate import simulate_records

ROOT = Path(__file__).parents[1]
PEERS = ROOT / ".venv-peers" / "bin" / "python"
sys.path.insert(0, str(ROOT / "tests" / "certification"))
import algorithm2  # noqa: E402  (the transcription that the tests hold the walk against)

BAR = 50
PEOPLE, SEEDS, STEPS, GRID = 10_000, 10, 12, 100
ALPHA, DELTA = 0.2, 0.05


def population(n: int) -> Records:
    return simulate_records(n, seed=1, seeds=SEEDS, steps=STEPS)


def speed() -> tuple[str, float]:
    """Every way to walk the large population, and the loops, in turn."""
    records = population(PEOPLE)
    nested = algorithm2.as_people(records)
    ways = {
        "paper": "HB, Algorithm 2's grid",
        "hb": "HB, every threshold",
        "wsr": "betting, every threshold",
    }
    jobs = [lambda b=b: RecourseCertifier(ALPHA, DELTA, bound=b).search(records) for b in ways]
    jobs += [lambda b=b: RecourseCertifier(ALPHA, DELTA, bound=b).calibrate(records) for b in ways]
    *mine, loops = best(*jobs, lambda: algorithm2.algorithm2(nested, ALPHA, DELTA, GRID), repeats=3)
    tau, feasible, *_ = algorithm2.algorithm2(nested[:300], ALPHA, DELTA, GRID)
    few = (
        RecourseCertifier(ALPHA, DELTA, bound="paper")
        .calibrate(records.take(records.person < 300))
        .certificate_
    )
    assert (few.tau, few.certified) == (tau, feasible), "the loops and the walk must agree"
    names = [
        *ways.values(),
        *(f"{name}, with the certificate and its curve" for name in ways.values()),
    ]
    rows = [[name, f"{t:.3f}", f"{loops / t:.0f}"] for name, t in zip(names, mine, strict=True)]
    rows.append([f"Algorithm 2's loops, G = {GRID}", f"{loops:.1f}", "1"])
    return table(["walk", "seconds", "times faster"], rows), float(loops / max(mine[0], mine[1]))


def growth() -> str:
    """Seconds over n log n, for n that doubles."""
    sizes = [1250 * 2**k for k in range(6)]
    data = [population(n) for n in sizes]
    times = best(
        *(lambda d=d: RecourseCertifier(ALPHA, DELTA, bound="hb").search(d) for d in data),
        repeats=5,
    )
    scale = [t / (n * np.log(n)) for t, n in zip(times, sizes, strict=True)]
    rows = [
        [f"{n:,}", f"{t:.3f}", f"{s / scale[0]:.2f}"]
        for n, t, s in zip(sizes, times, scale, strict=True)
    ]
    return table(["people", "seconds", "seconds / (n log n), the first being 1"], rows)


def savings(draws: int = 400) -> str:
    """Mean cost and false certificates of each bound on calibration sets drawn from a large known population."""
    rows = []
    for seeds in (1, 10):
        whole = simulate_records(20_000, seed=5, seeds=seeds)
        curve = trace(Runs.from_records(whole))
        assert curve is not None
        full, last = curve.full_cost, np.flatnonzero(curve.risk <= ALPHA)[-1]
        oracle = curve.cost(np.nextafter(np.append(curve.tau, np.inf)[last + 1], -np.inf))[0]
        steps = len(whole) // len(whole.people)
        for n in (50, 100, 200):
            random = np.random.default_rng(n)
            picked = [random.choice(len(whole.people), n, replace=False) for _ in range(draws)]
            cells = []
            for bound in ("paper", "hb", "hb_kl", "cp", "wsr", "hoeffding"):
                if bound == "cp" and seeds > 1:
                    cells.append("-")
                    continue
                certifier, costs, false = RecourseCertifier(ALPHA, DELTA, bound=bound), [], 0
                for who in picked:
                    # Sorted by person, so a person's rows are one block.
                    part = whole.take((np.sort(who)[:, None] * steps + np.arange(steps)).ravel())
                    result = certifier.search(part)
                    assert result is not None
                    tau = result.tau if result.passed else -np.inf
                    costs.append(curve.cost(tau)[0] / full)
                    false += bool(result.passed and curve.risk[curve.index(tau)] > ALPHA)
                cells.append(f"{np.mean(costs):.3f} ({100 * false / draws:.1f})")
            rows.append([f"{n}, {seeds}", *cells, f"{oracle / full:.3f}"])
    return table(["n, seeds", "paper", "hb", "hb_kl", "cp", "wsr", "hoeffding", "oracle"], rows)


def mapie() -> str:
    """Every count of some sizes at some levels: where the two differ, and why."""
    n = np.concatenate([np.full(size + 1, size) for size in (25, 100, 333, 1000)])
    lost = np.concatenate([np.arange(size + 1) for size in (25, 100, 333, 1000)])
    mu = np.array([0.05, 0.1, 0.2, 0.3])
    with tempfile.TemporaryDirectory() as folder:
        cases, out = Path(folder) / "cases.json", Path(folder) / "out.json"
        cases.write_text(
            json.dumps({"risk": (lost / n).tolist(), "n": n.tolist(), "mu": mu.tolist()})
        )
        command = [PEERS, ROOT / "benchmarks" / "peers" / "mapie_peers.py", cases, out]
        subprocess.run([str(part) for part in command], check=True)
        theirs = np.array(json.loads(out.read_text()))
    ours = p_value("hb_kl", mu, n[:, None], losses=lost[:, None])
    slipped = (np.ceil(lost / n * n) != lost)[:, None] & np.ones_like(ours, dtype=bool)
    gap = np.abs(ours - theirs) / np.maximum(ours, 1e-300)
    assert gap[~slipped & (ours > 1e-250)].max() < 1e-9, "apart from the ceil the two must agree"
    differ = slipped & (gap > 1e-9)
    summary = f"{ours.size:,} p-values (every count of 25, 100, 333 and 1,000 people, four levels). Largest relative gap "
    summary += f"where the float ceil is right: {gap[~slipped & (ours > 1e-250)].max():.1e}. Where (k/n)·n lands above k, MAPIE "
    return (
        summary
        + f"1.6.0 counts one loss more: {differ.sum()} of the p-values differ, by up to {gap[differ].max():.2g} of ours."
    )


def main() -> None:
    walks, ratio = speed()
    write(
        "certification",
        "Certification: speed, savings, cross-check",
        f"## Speed\n\n{PEOPLE:,} people, {SEEDS} seeds, {STEPS} steps, from records to the last threshold passed. The loops are "
        f"`tests/certification/algorithm2.py`, a transcription of Algorithm 2. Best of 3, in turn. "
        f"The bar is {BAR}; the slower of the two HB walks reaches {ratio:.0f}.",
        walks,
        "## Growth\n\nHB at every threshold, 10 seeds, 12 steps, best of 5 in turn.",
        growth(),
        f"## What a bound saves\n\nMean cost as a share of acquiring everything, and in brackets the share of false certificates "
        f"in percent, alpha = {ALPHA}, delta = {DELTA}, 400 calibration sets from a made-up population of 20,000 people "
        "(`edfa.certification.simulate`), whose risk at every threshold is known. The oracle knows it too.",
        savings(),
        "## MAPIE\n\n" + mapie(),
    )
    if ratio < BAR:
        sys.exit(f"the walk is {ratio:.0f} times faster than the loops; the bar is {BAR}")


if __name__ == "__main__":
    main()
