"""Trajectories as folders, without the model and the policy behind them: one that is read is given
these again.
"""

from pathlib import Path

from edfa.acquisition.base import Policy
from edfa.acquisition.trajectory import Trajectory
from edfa.artifacts import load_arrays, read_parts, readable, save_arrays, write_parts
from edfa.data.table import Table
from edfa.errors import UnreadableError
from edfa.people import Background, Provenance
from edfa.predictors.base import Predictor

__all__ = ["read", "write"]

PEOPLE = ("person", "values", "when", "declined")
STEPS = (
    "who",
    "step",
    "feature",
    "cost",
    "spent",
    "scores",
    "probabilities",
    "decision",
    "necessity",
)
FILE = "trajectory.safetensors"


def write(trajectory: Trajectory, folder: Path) -> None:
    """Write the columns of a trajectory, with a hash, into a folder."""
    columns = {name: getattr(trajectory, name) for name in (*PEOPLE, *STEPS)}
    content = save_arrays({name: column for name, column in columns.items() if column is not None})
    write_parts(folder / "trajectory", "Trajectory", {"seed": trajectory.seed}, {FILE: content})


def read(folder: Path, train: Table, predictor: Predictor, policy: Policy) -> Trajectory:
    """Read what ``write`` wrote; ``train``, ``predictor`` and ``policy`` are those of the run."""
    settings, parts = read_parts(folder / "trajectory", "Trajectory")
    with readable(str(folder)):
        columns = load_arrays(parts[FILE], FILE)
        if set(columns) | {"necessity"} != {*PEOPLE, *STEPS}:
            raise UnreadableError(f"{FILE} is damaged: it has other columns")
        if (
            len({len(columns[name]) for name in PEOPLE}) != 1
            or len({len(columns[n]) for n in STEPS if n in columns}) != 1
        ):
            raise UnreadableError(f"{FILE} is damaged: its columns are not of one length")
        return Trajectory(
            background=Background.of(train, predictor, policy.blanket, aligned=policy.aligned),
            seed=int(settings["seed"]),
            provenance=Provenance(policy=policy),
            **{"necessity": None, **columns},  # type: ignore[arg-type]
        )
