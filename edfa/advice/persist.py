"""A fitted advisor as a folder: JSON, safetensors, UBJSON and Parquet, each part with its hash. No pickle, ever.

Writing is all or nothing: killed at any moment, a save leaves the advisor that was there before, or the new one.
"""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.advice.advisor import Advisor
from edfa.advice.assessment import Fitted
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.factory import name_of, new_policy, settings_of
from edfa.advice.receipt import versions
from edfa.artifacts import list_files, replace_folder, restore_interrupted, sha256_of
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, UnreadableError, did_you_mean
from edfa.predictors import PREDICTORS
from edfa.predictors.base import Predictor
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher

__all__ = ["FORMAT", "check_place", "load", "save"]

FORMAT = 1
MANIFEST = "manifest.json"
KIND = "Advisor"
SETTINGS = ("signal", "budget", "alpha", "delta", "target", "seed", "threshold")


def save(advisor: Advisor, folder: str | Path) -> None:
    """Write a fitted advisor; one that is there is replaced when the new one is whole."""
    fitted, place = advisor.fitted, Path(folder)
    check_place(place)
    described = {
        "policy": _describe(fitted.policy, advisor.policy),
        "searcher": _describe(fitted.searcher, advisor.searcher),
    }
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "kind": KIND,
        "made_with": versions(),
        "fingerprint": fitted.fingerprint,
        "table": {"name": fitted.train.name, "seed": fitted.train.seed, "shares": fitted.train.shares},
        "settings": {name: getattr(advisor, name) for name in SETTINGS},
        "predictor": {"name": _predictor(fitted.model), "threshold": fitted.model.threshold},
        **described,
    }
    with replace_folder(place) as partial:
        _write_parts(advisor, partial)
        manifest["sha256"] = {part: sha256_of(partial / part) for part in list_files(partial)}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False), encoding="utf-8")


def load(folder: str | Path) -> Advisor:
    """Read what ``save`` wrote; a part that was changed, is missing or is too new is an error."""
    place = Path(folder)
    restore_interrupted(place)
    manifest = _manifest(place)
    for part, expected in manifest["sha256"].items():
        path = place / part
        if not path.resolve().is_relative_to(place.resolve()) or not path.is_file():
            raise UnreadableError(f"{place}: the part {part} is missing")
        if sha256_of(path) != expected:
            raise UnreadableError(f"{place}: the part {part} has been changed since it was written")
    try:
        return _assemble(place, manifest)
    except (KeyError, TypeError, AttributeError) as error:
        raise UnreadableError(f"{place}: its {MANIFEST} does not describe an advisor ({error})") from None


def check_place(place: Path) -> None:
    """Nothing but an advisor is ever replaced."""
    if place.exists() and not (place / MANIFEST).is_file() and (not place.is_dir() or any(place.iterdir())):
        raise DataError(f"{place} is there already and holds no advisor; choose another folder")


def _write_parts(advisor: Advisor, partial: Path) -> None:
    fitted = advisor.fitted
    nouns: dict[str, Any] = {"schema": fitted.schema, "encoder": fitted.encoder, "blanket": fitted.blanket}
    nouns |= {"certificate": fitted.certificate, "evaluation": getattr(advisor, "evaluation_", None)}
    for name, noun in nouns.items():
        if noun is not None:
            (partial / f"{name}.json").write_text(noun.to_json(), encoding="utf-8")
    fitted.train.frame.to_parquet(partial / "train.parquet", index=False)
    for name, learnt in (("model", fitted.model), ("policy", fitted.policy)):
        if hasattr(learnt, "to_folder"):
            learnt.to_folder(partial / name)
        elif hasattr(learnt, "to_json"):
            (partial / f"{name}.json").write_text(learnt.to_json(), encoding="utf-8")


def _manifest(place: Path) -> dict[str, Any]:
    if not place.is_dir():
        beside = [p.name for p in place.absolute().parent.iterdir()] if place.absolute().parent.is_dir() else []
        raise UnreadableError(f"there is no folder {place}{did_you_mean(place.name, beside)}")
    try:
        found: dict[str, Any] = json.loads((place / MANIFEST).read_text(encoding="utf-8"))
        written, kind = found["format"], found["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableError(f"{place} is not a saved advisor: its {MANIFEST} is missing or damaged") from None
    if kind != KIND:
        raise UnreadableError(f"{place} holds a {kind}, not an {KIND.lower()}")
    if not isinstance(written, int) or written > FORMAT:
        raise UnreadableError(f"{place} was written by a newer edfa (format {written}, this one reads {FORMAT})")
    return found


def _assemble(place: Path, manifest: dict[str, Any]) -> Advisor:
    nouns: tuple[tuple[str, Any], ...] = (("schema", Schema), ("encoder", Encoder), ("blanket", Blanket))
    schema, encoder, blanket = (_read(place, name, noun) for name, noun in nouns)
    told = manifest["table"]
    frame = pd.read_parquet(place / "train.parquet")
    train = Table(frame, schema, told["name"], told["seed"], tuple(told["shares"]), "train", encoder)
    predictor = PREDICTORS[manifest["predictor"]["name"]].from_folder(place / "model")
    predictor.threshold = manifest["predictor"]["threshold"]
    looking = SEARCHERS[manifest["searcher"]["name"]](train, **manifest["searcher"]["settings"])
    policy = _policy(manifest["policy"], blanket, looking, place)
    fitted = replace(
        Fitted.of(train, predictor, blanket, policy, looking),
        fingerprint=manifest["fingerprint"],
        signal=manifest["settings"]["signal"],
        budget=manifest["settings"]["budget"],
        certificate=_read(place, "certificate", Certificate),
    )
    by_name = {part: manifest[part]["name"] for part in ("policy", "searcher") if not manifest[part]["settings"]}
    parts: dict[str, Any] = {"policy": policy, "searcher": looking} | by_name
    advisor = Advisor(blanket, predictor, **parts, **manifest["settings"])
    advisor.fitted_ = fitted
    if (evaluation := _read(place, "evaluation", AdvisorEvaluation)) is not None:
        advisor.evaluation_ = evaluation
    return advisor


def _read(place: Path, name: str, noun: Any) -> Any:
    path = place / f"{name}.json"
    return noun.from_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def _policy(told: dict[str, Any], blanket: Blanket, looking: Searcher, place: Path) -> Policy:
    """The policy: from its folder, or made anew, with what it has learnt where that is a text."""
    if (place / "policy").is_dir():
        kind: Any = POLICIES[told["name"]]
        learnt: Policy = kind.from_folder(place / "policy")
        return learnt
    made: Any = new_policy(told["name"], blanket, looking, **told["settings"])
    if (place / "policy.json").is_file():
        made.restore((place / "policy.json").read_text(encoding="utf-8"))
    policy: Policy = made
    return policy


def _describe(made: Policy | Searcher, chosen: Any) -> dict[str, Any]:
    """Name and settings, none where it was chosen by name; what was learnt is in a part of its own."""
    if isinstance(chosen, str):
        return {"name": chosen, "settings": {}}
    return {"name": name_of(made), "settings": {} if hasattr(made, "to_folder") else settings_of(made)}


def _predictor(model: Predictor) -> str:
    return PREDICTORS.name_of(type(model))
