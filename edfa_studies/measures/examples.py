"""Examples in words: how a fact that is asked opens recourse, and what each policy ends with for
the same person. The entry is ``collect_examples``.
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

MAX_EXAMPLES = 12  # people, and transitions
MAX_TRANSITIONS = 2000  # transitions to choose from


def collect_examples(materials: Materials) -> Payload:
    """Put steps and plans of test people into words.

    Parameters
    ----------
    materials
        Those of a cell whose settings have the number of ``people``.

    Returns
    -------
    dict of lists of rows
        ``transition``: steps after which a feature that could not turn the decision can.
        ``person``: what people were asked, what it cost, and the first plan that they end with. At
        most 12 rows each.
    """
    trajectory = materials.trajectory("test")
    writer = _Writer(trajectory, materials.plans(trajectory), materials.blanket)
    people = range(min(MAX_EXAMPLES, len(trajectory.person)))
    return {"transition": writer.transitions(), "person": [writer.person(i) for i in people]}


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
            for plan in chosen[:MAX_TRANSITIONS].tolist()
        ]
        rows.sort(
            key=lambda r: (not r["helps"], r["had_recourse"], r["role"] != "spouse", r["cost"])
        )
        distinct = {(row["asked"], row["feature"]): row for row in reversed(rows)}
        return list(reversed(distinct.values()))[:MAX_EXAMPLES]

    def _transition(self, plan: int) -> dict[str, Any]:
        """What was known, what was asked, and the change that turns the decision now."""
        trajectory, schema, row = self.trajectory, self.trajectory.schema, int(self.plans.of[plan])
        asked = schema.names[trajectory.feature[row]]
        facts = self._facts(row)
        change = self.plans[plan].changes[0]
        turned = schema[change.feature]
        return {
            "person": int(trajectory.person[trajectory.who[row]]),
            "step": int(trajectory.step[row]),
            "cost": float(normalised_cost(trajectory)[row]),
            "known": [
                f"{plain(schema[name].title)}: {fact}"
                for name, fact in facts.items()
                if name != asked and name in self.blanket
            ],
            "asked": plain(schema[asked].title),
            "asked_value": facts[asked],
            "role": self._role(asked),
            "decision": self._outcome(int(trajectory.decision[row])),
            "feature": plain(turned.title),
            "from": value(turned, change.before, "en"),
            "to": value(turned, change.after, "en"),
            "reached": self._outcome(int(self.plans.reached[plan])),
            "helps": turned.actionable and self.plans[plan].reached == schema.favourable,
        }

    def person(self, i: int) -> dict[str, Any]:
        """What a person was asked, and the first plan that the person ends with."""
        trajectory, plans, blanket = self.trajectory, self.plans, self.blanket
        last, asked = int(trajectory.last[i]), trajectory.order(i)
        first = int(plans.first[last])
        changes = plans[first].changes if plans.legal[last] else ()
        return {
            "person": int(trajectory.person[i]),
            "steps": len(asked),
            "outside": sum(name not in blanket for name in asked),
            "cost": float(normalised_cost(trajectory)[last]),
            "decision": self._outcome(int(trajectory.decision[last])),
            "plan": "; ".join(map(self._change, changes)),
            "reached": self._outcome(int(plans.reached[first])) if changes else "",
            "changes": len(changes),
            "outside_changes": sum(change.feature not in blanket for change in changes),
            "asked": [plain(trajectory.schema[name].title) for name in asked],
        }

    def _change(self, change: Change) -> str:
        feature = self.trajectory.schema[change.feature]
        before, after = (value(feature, raw, "en") for raw in (change.before, change.after))
        return f"{plain(feature.title)}: {before} → {after}"

    def _facts(self, row: int) -> dict[str, str]:
        """What is known at a step, by name of the feature, in words."""
        facts, encoder = self.plans.people.X[row], self.trajectory.encoder
        return {
            feature.name: value(feature, encoder[feature.name].decode_one(float(code)), "en")
            for feature, code in zip(self.trajectory.schema, facts, strict=True)
            if not np.isnan(code)
        }

    def _outcome(self, code: int) -> str:
        schema = self.trajectory.schema
        return schema.outcome(schema.classes[code])

    def _role(self, name: str) -> str:
        if name in self.blanket.units:
            return "parent or child"
        return "spouse" if name in self.blanket.spouses else "outside the blanket"
