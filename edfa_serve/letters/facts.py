"""What is known of a person, sorted as a letter tells it: used, not used, not known, declined,
still needed.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from numbers import Real
from typing import TYPE_CHECKING, Any

from edfa_serve.letters.words import BUREAU_SOURCES

if TYPE_CHECKING:
    from edfa.advice.interview import Interview

__all__ = ["Facts", "sort_facts"]


@dataclass(frozen=True)
class Facts:
    """Facts of one person by what became of them; names in the card's order.

    ``used`` were shown to the model, with their values; ``unused`` were told and not shown to it.
    ``unknown`` are facts the model would see and nobody has asked for or told, ``declined`` those
    the person would not tell. ``needed`` may be asked for and are lacking: no sensitive one among
    them, for no decision may wait for it. ``from_bureau`` and ``from_others`` say whether a used
    fact comes from a credit bureau, or from another outside source; ``bureau_score`` whether one is
    a score that the bureau has made.
    """

    used: Mapping[str, Any]
    unused: tuple[str, ...]
    unknown: tuple[str, ...]
    declined: tuple[str, ...]
    needed: tuple[str, ...]
    from_bureau: bool
    from_others: bool
    bureau_score: bool = False


def sort_facts(interview: "Interview") -> Facts:
    """Sort the facts of an interview."""
    fitted, log = interview.fitted, interview.log
    schema, seen = fitted.schema, fitted.predictor.varies_
    told = dict(log.facts)
    shown = [name for name, is_seen in zip(schema.names, seen, strict=True) if is_seen]
    used = {name: _value(name, interview) for name in shown if name in told}
    lacking = [name for name in shown if name not in told]
    never = {
        name for name, is_never in zip(schema.names, fitted.never_ask, strict=True) if is_never
    }
    sources = {schema[name].source for name in used} - {""}
    return Facts(
        used=used,
        unused=tuple(name for name in schema.names if name in told and name not in used),
        unknown=tuple(name for name in lacking if name not in log.declined),
        declined=tuple(name for name in schema.names if name in log.declined),
        needed=tuple(name for name in lacking if name not in never and not schema[name].sensitive),
        from_bureau=bool(sources & {*BUREAU_SOURCES}),
        from_others=bool(sources - {*BUREAU_SOURCES}),
        bureau_score="bureau score" in sources,
    )


def _value(name: str, interview: "Interview") -> Any:
    """A number as it was told; anything else as it was understood."""
    told, log = interview.log.facts[name], interview.log
    if isinstance(told, Real) and not isinstance(told, bool):
        return told
    return interview.fitted.encoder.decode_cells(name, log.row[0, log.schema.index(name)])[0]
