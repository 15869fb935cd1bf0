"""A committee: models of the same kind learnt again from other people, to ask what the next model
would say.

A lender's model is learnt again every year. Whatever a person is advised today is judged by its
successor, which was learnt from other people and comes out a little different. Nobody has that
successor; but how far it will differ can be seen from the training people. A model that is learnt
from half as many people, drawn with replacement, differs from the one that was learnt from all of
them by about as much as two models differ that were learnt from different people.
"""

from collections.abc import Mapping
from dataclasses import dataclass, fields
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import numpy as np
import xgboost as xgb

from edfa.artifacts import (
    Folder,
    check_arrays,
    load_arrays,
    open_parts,
    save_arrays,
    write_parts,
)
from edfa.errors import SettingError, UnreadableError
from edfa.predictors.base import Predictor, class_probabilities
from edfa.predictors.booster_file import BoosterFile
from edfa.predictors.boosting import (
    Trees,
    TreeSettings,
    load_boosters,
    merge_boosters,
    train_booster,
    weighted_rows,
)
from edfa.typing import BoolArray, Float32Array, Int64Array, IntArray

SAMPLE_SHARE = 0.5  # of the number of training people, drawn with replacement for each member
COLUMNS = 0.8  # share of the columns that each tree may use
COLUMNS_FILE = "columns.safetensors"
# rows times trees up to which all members answer in one call: a call costs more than its rows
MAX_MERGED_ENTRIES = 400_000
FOLDS = 4  # parts of other people, of which each member leaves one out


@dataclass(frozen=True, eq=False)
class Committee:
    """Boosted trees, each learnt from other training people, of other size and depth; they decide
    as one model does.

    It is made once and never changes: cloning it gives itself.

    Parameters
    ----------
    members
        The models.
    columns
        Which features they are shown, (features,). All of these must be known: a committee judges
        complete people.
    decider
        The model whose threshold turns probabilities into decisions.

    Examples
    --------
    >>> import edfa
    >>> table = edfa.load("german")
    >>> model = edfa.SubsetXGB(n_estimators=20).fit(table.train.X, table.train.y)
    >>> committee = Committee.of(table.train.X, table.train.y, model, n_models=3)
    >>> votes = [committee.decide(member, table.test.X) for member in range(len(committee))]
    >>> np.array(votes).shape
    (3, 200)
    """

    members: tuple[Trees, ...]
    columns: BoolArray
    decider: Predictor

    @classmethod
    def of(
        cls,
        X: Float32Array,  # noqa: N803
        y: Int64Array,
        model: Predictor,
        n_models: int = 12,
        *,
        seed: int = 0,
        others: tuple[Float32Array, Int64Array] | None = None,
        varied: bool = True,
        share: float = SAMPLE_SHARE,
    ) -> Self:
        """Learn a committee from training people.

        Parameters
        ----------
        X, y
            Encoded training people (people, features), and their class codes (people,).
        model
            The fitted model that decides. The members are shown what it is shown (the blanket
            alone, if it is aligned with one), obey the directions that it obeys, weigh the classes
            as it does, and decide by its threshold.
        n_models
            The number of members, at least 2.
        seed
            Decides who is drawn, and the depths of the members.
        others
            People from whom neither the model nor the searcher has learnt, X and y as above.
            Each member learns from all of them too but those of its own fold (see ``FOLDS``), so
            that it can judge these: a model of training people alone has the same accidents as the
            one that is to be judged.
        varied
            Whether members also differ in depth and see some of the columns a tree; else they are
            of the model's own kind, as a judge should be.
        share
            How many training people each member learns from, as a share of their number.
        """
        if n_models < 2:
            raise SettingError(f"a committee has at least 2 models, not {n_models}")
        model._check_fitted()
        columns = np.asarray(model.varies_)
        settings, random = _tree_settings(model, columns), np.random.default_rng([seed, n_models])
        members = []
        for member in range(n_models):
            drawn = _draw(y, random, share)
            # to stop by; nobody learns from them
            left = np.setdiff1d(np.arange(len(y)), drawn)[: len(y) // 8]
            rows, codes = X[drawn], y[drawn]
            if others is not None:
                known = fold_of(np.arange(len(others[1]))) != fold_of(member)
                rows = np.concatenate([rows, others[0][known]])
                codes = np.concatenate([codes, others[1][known]])
            trees = settings
            if varied:
                depth = trees.depth + int(random.integers(-1, 2))
                trees = trees._replace(depth=depth, columns=COLUMNS)
            trees = trees._replace(seed=int(random.integers(2**31)))
            data = weighted_rows(model, rows[:, columns], codes)
            check = weighted_rows(model, X[left][:, columns], y[left])
            members.append(Trees(train_booster(data, check, len(model.classes_), trees)))
        return cls(tuple(members), columns, model)

    def __repr__(self) -> str:
        return f"<Committee of {len(self)}>"

    def __len__(self) -> int:
        return len(self.members)

    @property
    def boosters(self) -> tuple[xgb.Booster, ...]:
        """The members, as XGBoost asks them."""
        return tuple(member.booster for member in self.members)

    def __sklearn_clone__(self) -> Self:
        return self

    def decide(self, member: int, rows: Float32Array) -> IntArray:
        """What one member decides about complete people.

        Parameters
        ----------
        member
            The position of the member.
        rows
            Complete encoded people, (n, features).

        Returns
        -------
        Class codes, (n,).
        """
        return self.decide_shown(member, np.ascontiguousarray(rows[:, self.columns]))

    def decide_shown(self, member: int, rows: Float32Array) -> IntArray:
        """As ``decide``, from the columns that are shown alone, (n, shown features)."""
        if not len(rows):
            return np.zeros(0, dtype=np.intp)
        predicted = self.members[member].booster.inplace_predict(rows)
        return self.decider.decide(class_probabilities(predicted))

    def asks_together(self, count: int) -> bool:
        """Whether all members together answer about ``count`` rows faster than one after the other
        about a quarter.
        """
        return count * self._trees <= MAX_MERGED_ENTRIES and self._merged is not None

    def decide_together(self, rows: Float32Array) -> IntArray:
        """What all members decide about complete people, in one call of XGBoost where that is
        possible.

        Parameters
        ----------
        rows
            The columns that are shown, (n, shown features).

        Returns
        -------
        Class codes, (members, n); the same as ``decide_shown`` gives one after the other.
        """
        if not len(rows) or self._merged is None:
            return np.stack([self.decide_shown(member, rows) for member in range(len(self))])
        predicted = self._merged.inplace_predict(rows).T.ravel()
        return self.decider.decide(class_probabilities(predicted)).reshape(len(self), len(rows))

    @cached_property
    def _merged(self) -> xgb.Booster | None:
        """All members in one; None if that cannot be."""
        return merge_boosters(self.boosters)

    @cached_property
    def _trees(self) -> int:
        """The number of trees of all members."""
        return sum(booster.num_boosted_rounds() for booster in self.boosters)

    def __getstate__(self) -> dict[str, Any]:
        """The state to pickle: what is derived from the members is made again."""
        return {field.name: getattr(self, field.name) for field in fields(self)}

    def learnt_state(self) -> Mapping[str, Any]:
        """The members' SHA-256, and what they are shown; how they decide is a fact about the
        model.
        """
        members = {str(i): member.hash for i, member in enumerate(self.members)}
        return {"members": members, "columns": self.columns}

    def to_folder(self, folder: str | Path) -> None:
        """Write the members as UBJSON; no pickle."""
        parts = {f"{i:03d}.ubj": member.content for i, member in enumerate(self.members)}
        columns = save_arrays({"columns": self.columns.astype(np.uint8)})
        write_parts(folder, "Committee", {}, {COLUMNS_FILE: columns} | parts)

    @classmethod
    def from_folder(cls, folder: str | Path | Folder, model: Predictor) -> Self:
        """Read what ``to_folder`` wrote, each part checked against its hash.

        Parameters
        ----------
        folder
            A folder on disk, or one that was read into memory.
        model
            The model whose threshold turns probabilities into decisions.

        Raises
        ------
        UnreadableError
            If it holds something else, is damaged, or has fewer than two members.
        """
        with open_parts(folder, "Committee") as (_, parts):
            arrays = load_arrays(parts.pop(COLUMNS_FILE), COLUMNS_FILE)
            check_arrays(arrays, {"columns": ("u", len(model.varies_))}, COLUMNS_FILE)
            columns = arrays["columns"].astype(bool)
            if not (len(parts) > 1 and columns.any()):
                raise UnreadableError(
                    f"a committee has at least 2 models of some columns, not {len(parts)}"
                )
            shown, classes = int(columns.sum()), len(model.classes_)
            members = load_boosters(
                [BoosterFile(name, parts[name], shown, classes) for name in sorted(parts)]
            )
        return cls(tuple(members), columns, model)


def fold_of(number: Any) -> Any:
    """The fold of a person, or of a member that leaves these people out, by position; a number or
    an array.
    """
    return number % FOLDS


def _tree_settings(model: Any, columns: BoolArray) -> TreeSettings:
    """How members that are shown some ``columns`` (features,) are learnt: like a fitted ``model``,
    as far as boosted trees can be.
    """
    default, signs = TreeSettings(), np.asarray(model.directions())[columns]
    return TreeSettings(
        getattr(model, "n_estimators", default.trees),
        getattr(model, "max_depth", default.depth),
        getattr(model, "learning_rate", default.rate),
        signs=signs.tolist() if signs.any() and len(model.classes_) == 2 else (),
    )


def _draw(y: Int64Array, random: np.random.Generator, share: float) -> IntArray:
    """Positions of people, drawn with replacement, with one of every class among them.

    Parameters
    ----------
    y
        The class of each person, (people,).
    random
        Draws them.
    share
        How many are drawn, as a share of the number of people.
    """
    count = max(2, int(share * len(y)))
    drawn = random.integers(len(y), size=count)
    missing = np.setdiff1d(np.unique(y), y[drawn])
    others = [random.choice(np.flatnonzero(y == code)) for code in missing]
    return np.concatenate([drawn, np.asarray(others, dtype=drawn.dtype)])
