"""A fitted advisor as a folder: JSON, safetensors, UBJSON and Parquet, each part with its hash. No pickle, ever.

Writing is all or nothing: killed at any moment, a save leaves the advisor that was there before, or the new one.
"""

import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pandas as pd
import safetensors.numpy as safetensors

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.fitted import FittedAdvisor
from edfa.advice.receipt import versions
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.data.constraints import Constraints
from edfa.data.encode import Encoder
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import DataError, SettingError, UnreadableError, did_you_mean
from edfa.people import Background
from edfa.predictors import PREDICTORS
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import DirectionCheck
from edfa.reading import sha256_of
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.writing import list_files, replace_folder, restore_interrupted

__all__ = ["FORMAT", "SETTINGS", "check_target_folder", "load", "save"]

FORMAT = 4
MANIFEST = "manifest.json"
KIND = "Advisor"
SETTINGS = (
    "signal",
    "budget",
    "alpha",
    "delta",
    "target",
    "reference",
    "committee",
    "min_survival",
    "min_need",
    "seed",
    "threshold",
    "obey_directions",
    "groups",
)
"""The plain settings of an advisor; its parts are described by their class and their own settings."""
BEFORE_4: dict[str, Any] = {"reference": "trajectory_end", "committee": 0, "min_survival": 0.0, "min_need": 0.0}
"""The settings that advisors written in an older format did not have, as they were for them."""


def save(
    fitted: FittedAdvisor, settings: Mapping[str, Any], evaluation: AdvisorEvaluation | None, folder: str | Path
) -> None:
    """Write a fitted advisor; one that is there is replaced when the new one is whole."""
    root = Path(folder)
    check_target_folder(root)
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "kind": KIND,
        "made_with": versions(),
        "fingerprint": fitted.fingerprint,
        "table": {"name": fitted.train.name, "seed": fitted.train.seed, "shares": fitted.train.shares},
        "settings": dict(settings),
        "signal": fitted.signal,
        "reference": fitted.reference,
        "predictor": {
            "name": PREDICTORS.name_of(type(fitted.model)),
            "threshold": fitted.model.threshold,
            "favourable": fitted.model.favourable,
        },
        "policy": _describe(fitted.policy),
        "searcher": _describe(fitted.searcher),
    }
    with replace_folder(root) as partial:
        _write_parts(fitted, evaluation, partial)
        manifest["sha256"] = {part: sha256_of(partial / part) for part in list_files(partial)}
        (partial / MANIFEST).write_text(json.dumps(manifest, indent=1, ensure_ascii=False), encoding="utf-8")


def load(folder: str | Path) -> tuple[FittedAdvisor, dict[str, Any], AdvisorEvaluation | None]:
    """Read what ``save`` wrote; a part that was changed, is missing or is too new is an error."""
    root = Path(folder)
    restore_interrupted(root)
    manifest = _manifest(root)
    for part, expected in manifest["sha256"].items():
        path = root / part
        if not path.resolve().is_relative_to(root.resolve()) or not path.is_file():
            raise UnreadableError(f"{root}: the part {part} is missing")
        if sha256_of(path) != expected:
            raise UnreadableError(f"{root}: the part {part} has been changed since it was written")
    try:
        manifest["settings"] = (BEFORE_4 if manifest["format"] < 4 else {}) | manifest["settings"]
        fitted = _assemble(root, manifest)
        return fitted, dict(manifest["settings"]), _read(root, "evaluation", AdvisorEvaluation)
    except (LookupError, TypeError, AttributeError) as error:
        raise UnreadableError(f"{root}: its {MANIFEST} does not describe an advisor ({error})") from None


def check_target_folder(root: Path) -> None:
    """Nothing but an advisor is ever replaced."""
    if root.exists() and not (root / MANIFEST).is_file() and (not root.is_dir() or any(root.iterdir())):
        raise DataError(f"{root} is there already and holds no advisor; choose another folder")


def _write_parts(fitted: FittedAdvisor, evaluation: AdvisorEvaluation | None, partial: Path) -> None:
    nouns: dict[str, Any] = {"schema": fitted.schema, "encoder": fitted.encoder, "blanket": fitted.blanket}
    nouns |= {"constraints": fitted.constraints, "certificate": fitted.certificate, "evaluation": evaluation}
    nouns |= {"directions": fitted.directions, "certificates": fitted.certificates}
    for name, noun in nouns.items():
        if noun is not None:
            (partial / f"{name}.json").write_text(noun.to_json(), encoding="utf-8")
    fitted.train.frame.to_parquet(partial / "train.parquet", index=False)
    fitted.model.to_folder(partial / "model")
    fitted.policy.save_state(partial / "policy")
    for name, committee in (("committee", _committee(fitted.searcher)), ("judges", fitted.judges)):
        if committee is not None:
            committee.to_folder(partial / name)
    if fitted.calibration is not None:
        (partial / "calibration.safetensors").write_bytes(safetensors.save({"X": fitted.calibration}))


def _manifest(root: Path) -> dict[str, Any]:
    if not root.is_dir():
        beside = [p.name for p in root.absolute().parent.iterdir()] if root.absolute().parent.is_dir() else []
        raise UnreadableError(f"there is no folder {root}{did_you_mean(root.name, beside)}")
    try:
        manifest: dict[str, Any] = json.loads((root / MANIFEST).read_text(encoding="utf-8"))
        written, kind = manifest["format"], manifest["kind"]
    except (OSError, ValueError, KeyError, TypeError):
        raise UnreadableError(f"{root} is not a saved advisor: its {MANIFEST} is missing or damaged") from None
    if kind != KIND:
        raise UnreadableError(f"{root} holds a {kind}, not an {KIND.lower()}")
    if not isinstance(written, int) or written > FORMAT:
        raise UnreadableError(f"{root} was written by a newer edfa (format {written}, this one reads {FORMAT})")
    return manifest


def _assemble(root: Path, manifest: dict[str, Any]) -> FittedAdvisor:
    nouns: tuple[tuple[str, Any], ...] = (("schema", Schema), ("encoder", Encoder), ("blanket", Blanket))
    schema, encoder, blanket = (_read(root, name, noun) for name, noun in nouns)
    origin = manifest["table"]
    frame = pd.read_parquet(root / "train.parquet")
    train = Table(frame, schema, origin["name"], origin["seed"], tuple(origin["shares"]), "train", encoder)
    kind: Any = PREDICTORS[manifest["predictor"]["name"]]
    model = kind.from_folder(root / "model")
    model.threshold = manifest["predictor"]["threshold"]
    model.favourable = manifest["predictor"].get("favourable")
    searcher: Searcher = _make(manifest["searcher"])
    policy: Policy = _make(manifest["policy"])
    _share_committee(root, searcher, policy, Background.of(train, model, policy.blanket, aligned=policy.aligned))
    searcher.fit(train)
    policy = policy.load_state(root / "policy", train)
    fitted = FittedAdvisor.of(train, model, blanket, policy, searcher)
    rows = root / "calibration.safetensors"
    return replace(
        fitted,
        fingerprint=manifest["fingerprint"],
        reference=manifest.get("reference", "trajectory_end"),
        min_survival=manifest["settings"]["min_survival"],
        min_need=manifest["settings"]["min_need"],
        judges=Committee.from_folder(root / "judges", fitted.predictor) if (root / "judges").is_dir() else None,
        calibration=safetensors.load(rows.read_bytes())["X"] if rows.is_file() else None,
        signal=manifest["signal"],
        budget=manifest["settings"]["budget"],
        constraints=_read(root, "constraints", Constraints) or Constraints(),
        certificate=_read(root, "certificate", Certificate),
        groups=manifest["settings"].get("groups"),
        certificates=_read(root, "certificates", GroupCertificates),
        directions=_read(root, "directions", DirectionCheck),
    )


def _committee(part: Any) -> Committee | None:
    """The committee of a searcher; None if it has none."""
    return part.committee if isinstance(part, SurvivalSearch) else None


def _share_committee(root: Path, searcher: Searcher, policy: Policy, background: Background) -> None:
    """Give the searcher, and that of the policy, the committee that was written with them."""
    if not (root / "committee").is_dir() or not isinstance(searcher, SurvivalSearch):
        return
    shown = background.unaligned if searcher.all_features else background
    committee = Committee.from_folder(root / "committee", shown.predictor)
    own = [part for part in policy.get_params(deep=False).values() if isinstance(part, SurvivalSearch)]
    for part in (searcher, *own):
        part.set_params(committee=committee)


def _read(root: Path, name: str, noun: Any) -> Any:
    path = root / f"{name}.json"
    return noun.from_json(path.read_text(encoding="utf-8")) if path.is_file() else None


def _describe(part: Policy | Searcher) -> dict[str, Any]:
    """The name and the settings that make the same part again."""
    kinds = {"policy": POLICIES, "searcher": SEARCHERS}
    role = "policy" if isinstance(part, Policy) else "searcher"
    settings = {name: _plain(part, name, value) for name, value in part.get_params(deep=False).items()}
    return {"role": role, "name": kinds[role].name_of(type(part)), "settings": settings}


def _plain(part: Policy | Searcher, name: str, value: Any) -> Any:
    """A setting as JSON; nouns and parts as a mapping with their kind."""
    if isinstance(value, Blanket | Constraints):
        return {"kind": type(value).__name__, "content": json.loads(value.to_json())}
    if isinstance(value, Committee):
        return None  # in a folder of its own
    if isinstance(value, Policy | Searcher):
        return {"kind": "part", "content": _describe(value)}
    try:
        same = json.loads(json.dumps(value)) == (list(value) if isinstance(value, tuple) else value)
    except (TypeError, ValueError):
        same = False
    if not same:
        raise SettingError(
            f"an advisor with this {type(part).__name__} cannot be saved: its {name} is no plain setting; "
            "give it by name"
        )
    return value


def _make(description: dict[str, Any]) -> Any:
    """The part that ``_describe`` described, not fitted."""
    registry: Any = {"policy": POLICIES, "searcher": SEARCHERS}[description["role"]]
    return registry[description["name"]](**{n: _value(v) for n, v in description["settings"].items()})


def _value(setting: Any) -> Any:
    if isinstance(setting, list):
        return tuple(setting)
    if not isinstance(setting, dict) or "kind" not in setting:
        return setting
    if setting["kind"] == "part":
        return _make(setting["content"])
    nouns: dict[str, Any] = {"Blanket": Blanket, "Constraints": Constraints}
    return nouns[setting["kind"]].from_json(json.dumps(setting["content"]))
