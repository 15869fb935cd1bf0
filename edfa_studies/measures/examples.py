"""Examples in words: how a fact that is asked opens recourse, and what each policy ends with for
the same person.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.acquisition.trajectory import Trajectory
from edfa.blanket.units import Blanket
from edfa.explanation.partition import members
from edfa.recourse.plans import Change, Plans
from edfa.text.phrases import plain, value
from edfa_studies.measures import Payload
from edfa_studies.measures.growth import States, normalised_cost
from edfa_studies.products import Materials

__all__ = ["collect_examples"]

SHOWN = 12  # people, and transitions
MOST = 2000  # transitions to choose from


def collect_examples(materials: Materials) -> Payload:
    """Transitions from semifactual to counterfactual, and what people are asked and advised in the
    end.
    """
    trajectory = materials.trajectory("test")
    plans = materials.plans(trajectory)
    truth = materials.table.test.y[materials.people("test")]
    writer = _Writer(trajectory, plans, States(trajectory, plans, materials.blanket, truth))
    return {"transition": writer.transitions(), "person": writer.people()}


@dataclass(frozen=True, eq=False)
class _Writer:
    """Puts steps and plans of a trajectory into words."""

    trajectory: Trajectory
    plans: Plans
    states: States

    @property
    def blanket(self) -> Blanket:
        """The features that count."""
        return self.states.blanket

    def transitions(self) -> list[dict[str, Any]]:
        """Steps after which a feature that was known before, and could not turn the decision, can
        (Definition 9).

        Changes that a person could make, towards the favourable class, come first; then people who
        had no recourse at all before, and spouses that complete a unit. No two transitions are
        about the same two features.
        """
        trajectory, plans, states = self.trajectory, self.plans, self.states
        before = np.maximum(np.arange(len(trajectory)) - 1, 0)
        stays = (trajectory.step > 0) & (trajectory.decision == trajectory.decision[before])
        opened = (
            states.counterfactual
            & trajectory.known[before]
            & ~states.counterfactual[before]
            & stays[:, None]
        )
        feature = (~np.isnan(plans.to)).argmax(axis=1)
        chosen = np.flatnonzero((plans.l0 == 1) & opened[plans.of, feature])
        rows = [
            self._transition(int(plan))
            | {"had_recourse": bool(plans.legal[before[plans.of[plan]]])}
            for plan in chosen[:MOST]
        ]
        rows.sort(
            key=lambda row: (
                not row["helps"],
                row["had_recourse"],
                row["role"] != "spouse",
                row["cost"],
            )
        )
        distinct = {(row["asked"], row["feature"]): row for row in reversed(rows)}
        return list(reversed(distinct.values()))[:SHOWN]

    def _transition(self, plan: int) -> dict[str, Any]:
        """What was known, what was asked, and the change that turns the decision now."""
        row = int(self.plans.of[plan])
        schema, facts, asked = (
            self.trajectory.schema,
            self.plans.people.X[row],
            int(self.trajectory.feature[row]),
        )
        change, feature = self.plans[plan].changes[0], schema.features[asked]
        before, after = self._values(change)
        known = [
            j
            for j in np.flatnonzero(~np.isnan(facts))
            if j != asked and schema.names[j] in self.blanket
        ]
        return {
            "person": int(self.trajectory.person[self.trajectory.who[row]]),
            "step": int(self.trajectory.step[row]),
            "cost": float(normalised_cost(self.trajectory)[row]),
            "known": [
                f"{plain(schema.features[j].title)}: {self._fact(int(j), facts)}" for j in known
            ],
            "asked": plain(feature.title),
            "asked_value": self._fact(asked, facts),
            "role": self._role(feature.name),
            "decision": self._outcome(int(self.trajectory.decision[row])),
            "feature": plain(schema[change.feature].title),
            "from": before,
            "to": after,
            "reached": self._outcome(int(self.plans.reached[plan])),
            "helps": schema[change.feature].actionable
            and self.plans[plan].reached == schema.favourable,
        }

    def people(self) -> list[dict[str, Any]]:
        """What the first people were asked, and the first plan that they end with."""
        trajectory, cost = self.trajectory, normalised_cost(self.trajectory)
        inside = members(trajectory.schema.names, self.blanket)
        rows = []
        for i in range(min(SHOWN, len(trajectory.person))):
            last = int(trajectory.last[i])
            asked = [trajectory.schema.index(name) for name in trajectory.order(i)]
            plan = self.plans[int(self.plans.first[last])] if self.plans.legal[last] else None
            changes = plan.changes if plan else ()
            rows.append(
                {
                    "person": int(trajectory.person[i]),
                    "steps": len(asked),
                    "outside": int((~inside[asked]).sum()),
                    "cost": float(cost[last]),
                    "decision": self._outcome(int(trajectory.decision[last])),
                    "plan": "; ".join(self._change(change) for change in changes),
                    "reached": self._outcome(int(self.plans.reached[self.plans.first[last]]))
                    if plan
                    else "",
                    "changes": len(changes),
                    "outside_changes": sum(
                        change.feature not in self.blanket for change in changes
                    ),
                    "asked": [plain(trajectory.schema.features[j].title) for j in asked],
                }
            )
        return rows

    def _change(self, change: Change) -> str:
        before, after = self._values(change)
        return f"{plain(self.trajectory.schema[change.feature].title)}: {before} → {after}"

    def _values(self, change: Change) -> tuple[str, str]:
        feature = self.trajectory.schema[change.feature]
        return value(feature, change.before, "en"), value(feature, change.after, "en")

    def _fact(self, feature: int, facts: Any) -> str:
        column = self.trajectory.background.encoder.columns[feature]
        return value(
            self.trajectory.schema.features[feature], column.decode_one(float(facts[feature])), "en"
        )

    def _outcome(self, code: int) -> str:
        schema = self.trajectory.schema
        return schema.outcome(schema.classes[code])

    def _role(self, name: str) -> str:
        if name in self.blanket.units:
            return "parent or child"
        return "spouse" if name in self.blanket.spouses else "outside the blanket"
