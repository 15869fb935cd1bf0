"""Examples in words: how a fact that is asked opens recourse, and what each policy ends with for
the same person.
"""

from dataclasses import dataclass
from typing import Any

import numpy as np

from edfa.acquisition.trajectory import Trajectory
from edfa.blanket.units import Blanket
from edfa.recourse.plans import Change, Plans
from edfa.text.phrases import plain, value
from edfa_studies.measures import Payload
from edfa_studies.measures.growth import counterfactual, normalised_cost
from edfa_studies.products import Materials

__all__ = ["collect_examples"]

SHOWN = 12  # people, and transitions
MOST = 2000  # transitions to choose from


def collect_examples(materials: Materials) -> Payload:
    """Transitions from semifactual to counterfactual, and what people are asked and advised in the
    end.
    """
    trajectory = materials.trajectory("test")
    writer = _Writer(trajectory, materials.plans(trajectory), materials.blanket)
    return {"transition": writer.transitions(), "person": writer.people()}


@dataclass(frozen=True, eq=False)
class _Writer:
    """Puts steps and plans of a trajectory into words."""

    trajectory: Trajectory
    plans: Plans
    blanket: Blanket

    def transitions(self) -> list[dict[str, Any]]:
        """Steps after which a feature that was known before, and could not turn the decision, can
        (Definition 9).

        Changes that a person could make, towards the favourable class, come first; then people who
        had no recourse at all before, and spouses that complete a unit. No two transitions are
        about the same two features.
        """
        trajectory, plans, flips = self.trajectory, self.plans, counterfactual(self.trajectory)
        before = np.maximum(np.arange(len(trajectory)) - 1, 0)
        stays = (trajectory.step > 0) & (trajectory.decision == trajectory.decision[before])
        opened = flips & trajectory.known[before] & ~flips[before] & stays[:, None]
        feature = (~np.isnan(plans.to)).argmax(axis=1)
        chosen = np.flatnonzero((plans.l0 == 1) & opened[plans.of, feature])
        rows = [
            self._transition(plan) | {"had_recourse": bool(plans.legal[before[plans.of[plan]]])}
            for plan in chosen[:MOST].tolist()
        ]
        rows.sort(
            key=lambda r: (not r["helps"], r["had_recourse"], r["role"] != "spouse", r["cost"])
        )
        distinct = {(row["asked"], row["feature"]): row for row in reversed(rows)}
        return list(reversed(distinct.values()))[:SHOWN]

    def _transition(self, plan: int) -> dict[str, Any]:
        """What was known, what was asked, and the change that turns the decision now."""
        trajectory, schema, row = self.trajectory, self.trajectory.schema, int(self.plans.of[plan])
        facts, asked = self.plans.people.X[row], int(trajectory.feature[row])
        change = self.plans[plan].changes[0]
        turned = schema[change.feature]
        before, after = self._values(change)
        known = [
            f"{plain(feature.title)}: {self._fact(j, facts)}"
            for j, feature in enumerate(schema)
            if not np.isnan(facts[j]) and j != asked and feature.name in self.blanket
        ]
        return {
            "person": int(trajectory.person[trajectory.who[row]]),
            "step": int(trajectory.step[row]),
            "cost": float(normalised_cost(trajectory)[row]),
            "known": known,
            "asked": plain(schema.features[asked].title),
            "asked_value": self._fact(asked, facts),
            "role": self._role(schema.names[asked]),
            "decision": self._outcome(int(trajectory.decision[row])),
            "feature": plain(turned.title),
            "from": before,
            "to": after,
            "reached": self._outcome(int(self.plans.reached[plan])),
            "helps": turned.actionable and self.plans[plan].reached == schema.favourable,
        }

    def people(self) -> list[dict[str, Any]]:
        """What the first people were asked, and the first plan that they end with."""
        trajectory, plans, blanket = self.trajectory, self.plans, self.blanket
        cost = normalised_cost(trajectory)
        rows = []
        for i in range(min(SHOWN, len(trajectory.person))):
            last, asked = int(trajectory.last[i]), trajectory.order(i)
            first = int(plans.first[last])
            changes = plans[first].changes if plans.legal[last] else ()
            rows.append(
                {
                    "person": int(trajectory.person[i]),
                    "steps": len(asked),
                    "outside": sum(name not in blanket for name in asked),
                    "cost": float(cost[last]),
                    "decision": self._outcome(int(trajectory.decision[last])),
                    "plan": "; ".join(self._change(change) for change in changes),
                    "reached": self._outcome(int(plans.reached[first])) if changes else "",
                    "changes": len(changes),
                    "outside_changes": sum(change.feature not in blanket for change in changes),
                    "asked": [plain(trajectory.schema[name].title) for name in asked],
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
        decoded = self.trajectory.background.encoder.columns[feature].decode_one(
            float(facts[feature])
        )
        return value(self.trajectory.schema.features[feature], decoded, "en")

    def _outcome(self, code: int) -> str:
        schema = self.trajectory.schema
        return schema.outcome(schema.classes[code])

    def _role(self, name: str) -> str:
        if name in self.blanket.units:
            return "parent or child"
        return "spouse" if name in self.blanket.spouses else "outside the blanket"
