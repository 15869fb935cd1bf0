"""Known discrete networks and samples of them, and what other programs take for the Markov blankets in such a sample.

It runs in an environment made from benchmarks/peers.txt and knows nothing of edfa:

    python blanket_peers.py export --networks asia alarm --sizes 500 5000 --samples 3 --seed 0 --out FOLDER
    python blanket_peers.py run --method pycausalfs-hiton --data FOLDER/asia-500-0.parquet --out FILE.json

The file of `run` is replaced whole after every target, so a caller may stop the program at any time and keep what is
there. `seconds` holds the CPU time of each target; a program that learns a whole graph takes its time once, and each
target gets an equal part of it. Loading the data and the peer is not counted. A target on which the peer raised stands
under `errors` and nowhere else; `seconds_total` counts its time too. A column that has but one level in the sample is
kept from the peers, and its blanket is empty.
"""

import argparse
import gzip
import importlib
import json
import os
import time
import zlib
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from graphlib import TopologicalSorter
from importlib import resources
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from quiet import silence

LARGEST_SET = (
    3  # conditioning variables of pgmpy's PC; the other programs run with what they come with
)


# The networks


@dataclass(frozen=True)
class Network:
    """A discrete Bayesian network; a table has one row for each setting of the parents, the last one fastest."""

    levels: dict[str, list[str]]
    parents: dict[str, list[str]]
    tables: dict[str, np.ndarray]

    def sample(self, rows: int, random: np.random.Generator) -> dict[str, np.ndarray]:
        codes: dict[str, np.ndarray] = {}
        for node in TopologicalSorter(self.parents).static_order():
            setting = np.zeros(rows, dtype=np.int64)
            for parent in self.parents[node]:
                setting = setting * len(self.levels[parent]) + codes[parent]
            bounds = np.cumsum(self.tables[node], axis=1)[setting, :-1]
            codes[node] = (random.random((rows, 1)) >= bounds).sum(axis=1)
        return codes


def read_network(name: str) -> Network:
    """A network from pgmpy's wheel."""
    from pgmpy.readwrite import BIFReader

    file = resources.files("pgmpy") / "utils" / "example_models" / f"{name}.bif.gz"
    if not file.is_file():
        raise SystemExit(f"pgmpy carries no network {name!r}")
    with silence():
        reader = BIFReader(string=gzip.decompress(file.read_bytes()).decode())
    tables = {node: reader.variable_cpds[node].T for node in reader.variable_names}
    for node, rows in tables.items():
        assert np.allclose(rows.sum(axis=1), 1, atol=1e-3), (
            f"{name}: the table of {node} does not add up to 1"
        )
    return Network(
        levels={node: list(reader.variable_states[node]) for node in reader.variable_names},
        parents={node: list(reader.variable_parents[node]) for node in reader.variable_names},
        tables={node: rows / rows.sum(axis=1, keepdims=True) for node, rows in tables.items()},
    )


def export(networks: list[str], sizes: list[int], samples: int, seed: int, out: Path) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in networks:
        network = read_network(name)
        nodes = list(network.levels)
        replace(
            out / f"{name}.json",
            {"nodes": nodes, "parents": network.parents, "levels": network.levels},
        )
        for size in sizes:
            for number in range(samples):
                # A sample depends on what it is, not on what else is exported with it.
                random = np.random.default_rng([seed, zlib.crc32(name.encode()), size, number])
                frame = pd.DataFrame(network.sample(size, random), dtype=np.int16)
                frame = frame[[nodes[place] for place in random.permutation(len(nodes))]]
                frame.to_parquet(out / f"{name}-{size}-{number}.parquet", index=False)
        print(f"{name}: {len(nodes)} nodes, {len(sizes) * samples} samples")


# The peers


@dataclass
class Graph:
    """A learned graph: `directed` from parent to child, `joined` for edges without one direction."""

    directed: set[tuple[str, str]] = field(default_factory=set)
    joined: set[tuple[str, str]] = field(default_factory=set)

    def blanket(self, target: str) -> list[str]:
        """Parents, children, neighbours of unknown direction, and the other parents of the children."""
        children = {child for parent, child in self.directed if parent == target}
        parents = {
            parent for parent, child in self.directed if child == target or child in children
        }
        around = {node for edge in self.joined if target in edge for node in edge}
        return sorted((children | parents | around) - {target})


Blanket = Callable[[str], list[str]]
"""From a target to its blanket: the peer's whole work on one target."""

Learner = Callable[[], Graph]
"""The peer's whole work on one table."""


def pycausalfs(module: str, name: str) -> Callable[[pd.DataFrame, float], Blanket]:
    """A function of pyCausalFS: (data, target's position, alpha, discrete) -> (positions, number of tests)."""

    def prepare(frame: pd.DataFrame, alpha: float) -> Blanket:
        function = getattr(importlib.import_module(f"pyCausalFS.CBD.MBs.{module}"), name)
        # It copies the table for every test; of the forms it takes, a whole-number array is the cheapest to copy.
        data, names = frame.to_numpy(dtype=int), list(frame.columns)
        return lambda target: [
            names[place] for place in function(data, names.index(target), alpha, True)[0]
        ]

    return prepare


def causallearn_iamb(frame: pd.DataFrame, alpha: float) -> Blanket:
    cit = importlib.import_module("causallearn.utils.cit")
    iamb = importlib.import_module("causallearn.utils.MarkovNetwork.iamb").iamb
    data, names = frame.to_numpy(dtype=int), list(frame.columns)

    def blanket(target: str) -> list[str]:
        test = cit.CIT(data, "gsq")  # a new one each time: it remembers its tests
        return [names[place] for place in iamb(test, len(names), names.index(target), alpha)[0]]

    return blanket


def causallearn_pc(frame: pd.DataFrame, alpha: float) -> Learner:
    pc = importlib.import_module("causallearn.search.ConstraintBased.PC").pc
    data, names = frame.to_numpy(dtype=int), list(frame.columns)

    def learn() -> Graph:
        ends = pc(data, alpha, "gsq", show_progress=False, node_names=names).G.graph
        graph = Graph()
        # ends[i, j] is the mark at i of the edge between i and j: -1 tail, 1 arrow, 0 no edge
        for i, j in zip(*np.nonzero(ends), strict=True):
            if ends[i, j] == -1 and ends[j, i] == 1:
                graph.directed.add((names[i], names[j]))
            elif ends[i, j] == ends[j, i]:
                graph.joined.add((names[i], names[j]))
        return graph

    return learn


def pgmpy_pc(frame: pd.DataFrame, alpha: float) -> Learner:
    kind = importlib.import_module("pgmpy.causal_discovery").PC
    data = frame.astype("category")

    def learn() -> Graph:
        learner = kind(
            variant="stable",
            ci_test="g_sq",
            return_type="pdag",
            significance_level=alpha,
            max_cond_vars=LARGEST_SET,
            n_jobs=1,
            show_progress=False,
        )
        found = learner.fit(data).causal_graph_
        return Graph(set(found.directed_edges), set(found.undirected_edges))

    return learn


def pyagrum(choose: Callable[[Any], object]) -> Callable[[pd.DataFrame, float], Learner]:
    """A learner of pyAgrum on one thread; these take no alpha."""

    def prepare(frame: pd.DataFrame, alpha: float) -> Learner:
        gum = importlib.import_module("pyagrum")
        data = frame.astype(str).radd(
            "level"
        )  # words, or a level missing between two others would be made up

        def learn() -> Graph:
            learner = gum.BNLearner(data)
            learner.setNumberOfThreads(1)
            choose(learner)
            found = learner.learnPDAG() if learner.isConstraintBased() else learner.learnDAG()
            edges = found.edges() if learner.isConstraintBased() else ()
            name = learner.nameFromId
            return Graph(
                {(name(a), name(b)) for a, b in found.arcs()},
                {(name(a), name(b)) for a, b in edges},
            )

        return learn

    return prepare


BLANKETS: dict[str, Callable[[pd.DataFrame, float], Blanket]] = {
    "pycausalfs-iamb": pycausalfs("IAMB", "IAMB"),
    "pycausalfs-hiton": pycausalfs("HITON.HITON_MB", "HITON_MB"),
    "pycausalfs-bamb": pycausalfs("BAMB", "BAMB"),
    "causallearn-iamb": causallearn_iamb,
}
LEARNERS: dict[str, Callable[[pd.DataFrame, float], Learner]] = {
    "causallearn-pc": causallearn_pc,
    "pgmpy-pc": pgmpy_pc,
    # With its own default, the MDL correction, MIIC does clearly worse on child, insurance and alarm.
    "pyagrum-miic": pyagrum(lambda learner: (learner.useMIIC(), learner.useNMLCorrection())),
    "pyagrum-tabu": pyagrum(
        lambda learner: (learner.useLocalSearchWithTabuList(), learner.useScoreBDeu())
    ),
}


# Running one


def replace(path: Path, content: object) -> None:
    """Writes the file so that a reader sees the old or the new one and never a half."""
    beside = path.with_name(f"{path.name}.{os.getpid()}.tmp")
    beside.write_text(json.dumps(content, indent=1) + "\n")
    beside.replace(path)


@dataclass
class Result:
    path: Path
    blankets: dict[str, list[str]] = field(default_factory=dict)
    seconds: dict[str, float] = field(default_factory=dict)
    errors: dict[str, dict[str, str]] = field(default_factory=dict)
    total: float = 0.0

    def write(self) -> None:
        content = {"blankets": self.blankets, "seconds": self.seconds, "seconds_total": self.total}
        replace(self.path, {**content, "errors": self.errors})

    def measure(self, work: Callable[[], dict[str, list[str]]], targets: Iterable[str]) -> None:
        """Does the work for these targets and writes what came of it."""
        targets = list(targets)
        start = time.process_time()
        try:
            with silence():
                blankets = work()
        except Exception as error:
            taken = time.process_time() - start
            self.errors.update(
                {target: {"error": f"{type(error).__name__}: {error}"} for target in targets}
            )
        else:
            taken = time.process_time() - start
            self.blankets.update(blankets)
            self.seconds.update({target: taken / len(targets) for target in targets})
        self.total += taken
        self.write()


def run(method: str, data: Path, targets: list[str], alpha: float, out: Path) -> None:
    frame = pd.read_parquet(data)
    targets = list(dict.fromkeys(targets or frame.columns))
    if unknown := [target for target in targets if target not in frame.columns]:
        raise SystemExit(f"{data} has no column {', '.join(unknown)}")
    # A column of one level depends on nothing, but pgmpy joins it to every other and pyAgrum to some: none sees it.
    flat = [column for column in frame.columns if frame[column].nunique() < 2]
    frame = frame.drop(columns=flat)
    result = Result(out, {target: [] for target in targets if target in flat})
    result.seconds.update(dict.fromkeys(result.blankets, 0.0))
    result.write()
    targets = [target for target in targets if target not in flat]
    with silence():
        work = (
            BLANKETS[method](frame, alpha) if method in BLANKETS else LEARNERS[method](frame, alpha)
        )
    if method in BLANKETS:
        for target in targets:
            result.measure(lambda target=target: {target: sorted(work(target))}, [target])
    else:

        def learn() -> dict[str, list[str]]:
            graph = work()
            return {target: graph.blanket(target) for target in targets}

        result.measure(learn, targets)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    exporting = commands.add_parser("export", help="write networks and samples of them")
    exporting.add_argument("--networks", nargs="+", default=["asia", "child", "insurance", "alarm"])
    exporting.add_argument("--sizes", nargs="+", type=int, default=[500, 1000, 5000])
    exporting.add_argument("--samples", type=int, default=3, help="how many of each size")
    exporting.add_argument("--seed", type=int, default=0)
    exporting.add_argument("--out", type=Path, required=True, help="a folder")
    running = commands.add_parser("run", help="let one program look for the blankets in one sample")
    running.add_argument("--method", choices=[*BLANKETS, *LEARNERS], required=True)
    running.add_argument("--data", type=Path, required=True, help="a .parquet of level codes")
    running.add_argument("--targets", nargs="+", default=[], help="all columns if not given")
    running.add_argument("--alpha", type=float, default=0.01)
    running.add_argument("--out", type=Path, required=True, help="a .json")
    given = vars(parser.parse_args())
    {"export": export, "run": run}[given.pop("command")](**given)


if __name__ == "__main__":
    main()
