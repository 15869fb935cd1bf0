"""A fitted advisor as a folder: JSON, safetensors, UBJSON and Parquet, each part with its hash. No
pickle, ever.

Writing is all or nothing: killed at any moment, a save leaves the advisor that was there before, or
the new one. What is read must be the advisor that it says it is: its fingerprint is worked out
again from all that it was made of. Every file is read once and checked against its hash; what was
checked is what is parsed afterwards.
"""

import hashlib
import io
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import pandas as pd

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.fitted import Ending, FittedAdvisor, Promise, identify_advisor
from edfa.advice.receipt import versions
from edfa.artifacts import (
    LIMIT,
    MANIFEST,
    Folder,
    check_arrays,
    check_replaceable,
    load_arrays,
    read_files,
    readable,
    save_arrays,
)
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.records import REFERENCES, Reference
from edfa.certification.risk_curve import Target
from edfa.data.encode import Encoder
from edfa.data.rules import Rules
from edfa.data.schema import Schema
from edfa.data.table import Table
from edfa.errors import MismatchError, SettingError, UnreadableError, did_you_mean
from edfa.people import Background
from edfa.predictors.committee import Committee
from edfa.predictors.monotone import DirectionCheck
from edfa.predictors.saved import read_predictor, saved_name
from edfa.reading import parse, parse_json, read_text
from edfa.recourse import SEARCHERS
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.writing import list_files, read_settled, replace_folder

__all__ = [
    "FORMAT",
    "KIND",
    "PlainSettings",
    "check_target_folder",
    "finish_manifest",
    "load",
    "people_from_parquet",
    "people_to_parquet",
    "read_saved",
    "save",
]

FORMAT = 1
KIND = "Advisor"
SEAL = "manifest_sha256"
NEEDED = (
    "schema.json",
    "encoder.json",
    "blanket.json",
    "rules.json",
    "train.parquet",
    "calibration.safetensors",
    "model/manifest.json",
)


def finish_manifest(manifest: Mapping[str, Any], parts: Mapping[str, bytes]) -> str:
    """The text of a manifest, with the hashes of all parts and of itself."""
    hashes = {name: hashlib.sha256(parts[name]).hexdigest() for name in sorted(parts)}
    whole = {**manifest, "sha256": hashes}
    return json.dumps(whole | {SEAL: _seal(whole)}, indent=1, ensure_ascii=False, allow_nan=False)


def _seal(manifest: Mapping[str, Any]) -> str:
    """The hash of a manifest without its own; a byte that is changed by accident is noticed."""
    rest = {name: value for name, value in manifest.items() if name != SEAL}
    return hashlib.sha256(json.dumps(rest, sort_keys=True).encode()).hexdigest()


def read_saved(root: Path) -> tuple[dict[str, Any], Folder]:
    """The manifest of a saved advisor and its parts, each checked against its hash.

    Files that the manifest does not name (such as ``monitor.json``) are left alone.
    """
    return read_settled(root, lambda: _read_folder(root))


def _read_folder(root: Path) -> tuple[dict[str, Any], Folder]:
    if not root.is_dir():
        beside = (
            [p.name for p in root.absolute().parent.iterdir()]
            if root.absolute().parent.is_dir()
            else []
        )
        raise UnreadableError(f"there is no folder {root}{did_you_mean(root.name, beside)}")
    manifest = _check_manifest(root)
    hashes = manifest["sha256"]
    for name in NEEDED:
        if name not in hashes:
            raise UnreadableError(f"{root}: the part {name} is missing")
    files = read_files(root, list(hashes))
    for name, content in files.items():
        if hashlib.sha256(content).hexdigest() != hashes[name]:
            raise UnreadableError(f"{root}: the part {name} has been changed since it was written")
    return manifest, Folder(str(root), files)


def _check_manifest(root: Path) -> dict[str, Any]:
    try:
        manifest: Any = parse_json(read_text(root / MANIFEST), MANIFEST)
        written, kind, hashes = manifest["format"], manifest["kind"], manifest["sha256"]
    except (UnreadableError, KeyError, TypeError):
        raise UnreadableError(
            f"{root} is not a saved advisor: its {MANIFEST} is missing or damaged"
        ) from None
    if kind != KIND:
        raise UnreadableError(f"{root} holds a {kind}, not an {KIND.lower()}")
    if type(written) is not int or written != FORMAT:
        raise UnreadableError(
            f"{root} was written by another edfa (format {written}, this one reads {FORMAT})"
        )
    if not isinstance(hashes, dict) or not all(isinstance(value, str) for value in hashes.values()):
        raise UnreadableError(f"{root} is not a saved advisor: its {MANIFEST} has no hashes")
    if manifest.get(SEAL) != _seal(manifest):
        raise UnreadableError(f"{root}: its {MANIFEST} has been changed since it was written")
    return dict(manifest)


def people_to_parquet(frame: pd.DataFrame) -> bytes:
    """The rows of a table as Parquet."""
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def people_from_parquet(content: bytes, name: str, limit: int = LIMIT) -> pd.DataFrame:
    """The rows that ``people_to_parquet`` wrote; UnreadableError if they would take more than
    ``limit`` bytes.

    The size is worked out before any memory is taken for it: a small file may unpack to any number
    of rows, and a word that is written once may stand in every one of them.
    """
    import pyarrow as pa
    import pyarrow.parquet as pq

    with readable(name):
        try:
            file = pq.ParquetFile(pa.BufferReader(content))
            columns, rows = file.schema_arrow, file.metadata.num_rows
            groups = [file.metadata.row_group(i) for i in range(file.metadata.num_row_groups)]
            _bound(
                max(sum(group.total_byte_size for group in groups), rows * len(columns) * 8),
                name,
                limit,
            )
            if any(pa.types.is_nested(field.type) for field in columns):
                raise UnreadableError(
                    f"{name} is damaged: its columns hold more than one value a row"
                )
            if (
                sum(group.total_byte_size * group.num_rows for group in groups) > limit
            ):  # if one word fills them all
                words = [
                    f.name
                    for f in columns
                    if pa.types.is_large_string(f.type) or pa.types.is_string(f.type)
                ]
                coded = pq.read_table(
                    pa.BufferReader(content), columns=words, read_dictionary=words
                )
                _bound(sum(_expanded(coded[word]) for word in words), name, limit)
            return pd.read_parquet(io.BytesIO(content))
        except (pa.ArrowException, OSError, MemoryError) as error:
            first = (str(error).strip() or type(error).__name__).splitlines()[0]
            raise UnreadableError(f"{name} is damaged: {first}") from None


def _bound(size: int, name: str, limit: int) -> None:
    if size > limit:
        raise UnreadableError(f"{name} unpacks to {size:,} bytes; at most {limit:,} are read")


def _expanded(column: Any) -> int:
    """The bytes that a column of words takes once every row has its own, at least."""
    import pyarrow as pa
    import pyarrow.compute as pc

    size = 0
    for chunk in column.chunks:
        if not isinstance(chunk, pa.DictionaryArray):
            size += chunk.nbytes
            continue
        counts = pc.value_counts(chunk.indices)
        lengths = pc.binary_length(chunk.dictionary.cast(pa.large_string()))
        used = counts.field("values")
        each = pc.multiply(
            lengths.take(used.cast(pa.int64())).cast(pa.int64()), counts.field("counts")
        )
        size += pc.sum(each).as_py() or 0
    return size


ROWS = "calibration.safetensors"
Number = int | float  # one that was written as 0 is read as 0, not as 0.0


@dataclass(frozen=True)
class PlainSettings:
    """The plain settings of an advisor; its parts are described by their class and their own."""

    signal: str | None
    budget: Number | Literal["inf"]
    alpha: Number
    delta: Number
    target: Target
    reference: Reference | Literal["auto"]
    committee: int
    min_survival: Number
    min_need: Number
    seed: int
    threshold: Number | str | None
    obey_directions: bool
    groups: str | None


def save(
    fitted: FittedAdvisor,
    settings: PlainSettings,
    evaluation: AdvisorEvaluation | None,
    folder: str | Path,
) -> None:
    """Write a fitted advisor; one that is there is replaced when the new one is whole.

    Raises
    ------
    MismatchError
        If something was changed since it was fitted, so that it is not the advisor that its
        fingerprint names.
    """
    root = Path(folder)
    check_target_folder(root)
    if fitted.fingerprint != identify_advisor(fitted):
        raise MismatchError(
            "this advisor is not the one that was fitted: one of its parts was changed; "
            "fit it again"
        )
    manifest: dict[str, Any] = {
        "format": FORMAT,
        "kind": KIND,
        "made_with": dict(fitted.made_with or versions()),
        "fingerprint": fitted.fingerprint,
        "table": {
            "name": fitted.train.name,
            "seed": fitted.train.seed,
            "shares": fitted.train.shares,
        },
        "settings": asdict(settings),
        "signal": fitted.promise.ending.signal,
        "reference": fitted.promise.reference,
        "predictor": {
            "name": saved_name(fitted.model),
            "threshold": fitted.model.threshold,
            "favourable": fitted.model.favourable,
        },
        "policy": _describe(fitted.policy),
        "searcher": _describe(fitted.searcher),
    }
    with replace_folder(root) as partial:
        check_replaceable(root, KIND, locked=True)
        _write_parts(fitted, evaluation, partial)
        parts = {part: (partial / part).read_bytes() for part in list_files(partial)}
        (partial / MANIFEST).write_text(finish_manifest(manifest, parts), encoding="utf-8")


def load(
    folder: str | Path, model: Any = None
) -> tuple[FittedAdvisor, PlainSettings, AdvisorEvaluation | None]:
    """Read what ``save`` wrote.

    Parameters
    ----------
    folder
        The folder of a saved advisor.
    model
        The user model, where it is in no file of the folder.

    Returns
    -------
    tuple
        The fitted advisor, its plain settings, and its evaluation, if there is one.

    Raises
    ------
    UnreadableError
        If a part is missing or was changed, or if the advisor is not the one that its fingerprint,
        worked out again from what was read, says it is.
    """
    root = Path(folder)
    manifest, saved = read_saved(root)
    try:
        with readable(f"what its {MANIFEST} describes"):
            settings = parse(PlainSettings, manifest["settings"], "settings", UnreadableError)
            fitted = _assemble(saved, manifest, settings, model)
            fitted = replace(fitted, made_with=_made_with(manifest))
            _check_identity(fitted)
            return fitted, settings, _read_evaluation(saved, fitted.fingerprint)
    except UnreadableError as error:
        raise UnreadableError(f"{root} holds no whole advisor: {error}") from None


def check_target_folder(root: Path) -> None:
    """Nothing but an advisor is ever replaced."""
    check_replaceable(root, KIND)


def _check_identity(fitted: FittedAdvisor) -> None:
    """Raise UnreadableError unless an advisor is what its fingerprint says, and its promises are
    its own.
    """
    if identify_advisor(fitted) != fitted.fingerprint:
        changed = {k: v for k, v in (fitted.made_with or {}).items() if versions().get(k) != v}
        hint = f"; it was made with {changed}, which may be why" if changed else ""
        raise UnreadableError(f"it is not the advisor it says it is, {fitted.fingerprint}{hint}")
    promise = fitted.promise
    if isinstance(promise.certificate, GroupCertificates) != (promise.groups is not None) and (
        promise.certificate is not None
    ):
        raise UnreadableError(
            "it has a certificate for all people and groups, or certificates of groups "
            "without groups"
        )
    for label, certificate in promise.certificates.items():
        own = promise.check_owner(certificate, fitted.fingerprint)
        if not own or certificate.group != label:
            about = (
                f"{certificate.advisor!r}, {certificate.signal}, "
                f"{certificate.reference}, {certificate.group}"
            )
            raise UnreadableError(f"its certificate is of another advisor or group: {about}")


def _made_with(manifest: Mapping[str, Any]) -> dict[str, str]:
    made_with = dict(manifest["made_with"])
    if not all(isinstance(version, str) for version in made_with.values()):
        raise UnreadableError("made_with has versions as text")
    return made_with


def _write_parts(
    fitted: FittedAdvisor, evaluation: AdvisorEvaluation | None, partial: Path
) -> None:
    nouns: dict[str, Any] = {
        "schema": fitted.schema,
        "encoder": fitted.encoder,
        "blanket": fitted.blanket,
    }
    nouns |= {"rules": fitted.operator_rules, "directions": fitted.directions}
    made = fitted.promise.certificate
    nouns["certificates" if isinstance(made, GroupCertificates) else "certificate"] = made
    for name, noun in nouns.items():
        if noun is not None:
            (partial / f"{name}.json").write_text(noun.to_json(), encoding="utf-8")
    if evaluation is not None:
        record = {"advisor": fitted.fingerprint} | json.loads(evaluation.to_json())
        (partial / "evaluation.json").write_text(
            json.dumps(record, ensure_ascii=False), encoding="utf-8"
        )
    (partial / "train.parquet").write_bytes(people_to_parquet(fitted.train.frame))
    fitted.model.to_folder(partial / "model")
    fitted.policy.save_state(partial / "policy")
    for name, committee in (("committee", _committee(fitted.searcher)), ("judges", fitted.judges)):
        if committee is not None:
            committee.to_folder(partial / name)
    (partial / ROWS).write_bytes(save_arrays({"X": fitted.calibration}))


def _assemble(
    saved: Folder, manifest: dict[str, Any], settings: PlainSettings, own: Any
) -> FittedAdvisor:
    nouns: tuple[tuple[str, Any], ...] = (
        ("schema", Schema),
        ("encoder", Encoder),
        ("blanket", Blanket),
    )
    schema, encoder, blanket = (_read(saved, name, noun) for name, noun in nouns)
    origin = manifest["table"]
    frame = people_from_parquet(saved.files["train.parquet"], "train.parquet")
    if list(frame.columns) != [*schema.names, schema.target] or encoder.names != schema.names:
        raise UnreadableError("train.parquet has other columns than the card")
    train = Table(
        frame, schema, origin["name"], origin["seed"], tuple(origin["shares"]), "train", encoder
    )
    model = read_predictor(saved.under("model"), str(manifest["predictor"]["name"]), own)
    model.threshold = manifest["predictor"]["threshold"]
    model.favourable = manifest["predictor"]["favourable"]
    if model.n_features_in_ != len(schema) or len(model.classes_) != len(schema.classes):
        raise UnreadableError("the model is of other features or classes than the card")
    searcher: Searcher = _make(manifest["searcher"])
    policy: Policy = _make(manifest["policy"])
    _share_committee(
        saved, searcher, policy, Background.of(train, model, policy.blanket, aligned=policy.aligned)
    )
    searcher.fit(train)
    policy = policy.load_state(saved.under("policy"), train)
    fitted = FittedAdvisor.of(train, model, blanket, policy, searcher)
    reference = manifest["reference"]
    if reference not in REFERENCES:
        raise UnreadableError(f"the reference is {reference!r}")
    if not isinstance(manifest["fingerprint"], str):
        raise UnreadableError(f"the fingerprint is {manifest['fingerprint']!r}")
    judges = saved.under("judges")
    return replace(
        fitted,
        fingerprint=manifest["fingerprint"],
        promise=Promise(
            Ending(signal=manifest["signal"], target=settings.target, alpha=settings.alpha),
            settings.delta,
            reference,
            settings.min_survival,
            settings.min_need,
            settings.groups,
            _read_certificate(saved),
        ),
        judges=Committee.from_folder(judges, fitted.predictor) if judges.files else None,
        calibration=_read_rows(saved, len(schema)),
        budget=settings.budget,
        operator_rules=_read(saved, "rules", Rules),
        directions=_read(saved, "directions", DirectionCheck),
    )


def _read_certificate(saved: Folder) -> Certificate | GroupCertificates | None:
    """The certificate of everybody, or those of groups; a folder with both is damaged."""
    kinds: tuple[tuple[str, Any], ...] = (
        ("certificate", Certificate),
        ("certificates", GroupCertificates),
    )
    parts = [_read(saved, *kind) for kind in kinds]
    if None not in parts:
        raise UnreadableError("it has a certificate for all people and certificates of groups")
    return next((part for part in parts if part is not None), None)


def _read_rows(saved: Folder, width: int) -> Any:
    """The encoded calibration people, (people, features)."""
    arrays = load_arrays(saved.files[ROWS], ROWS)
    check_arrays(arrays, {"X": ("f", None, width)}, ROWS)
    return arrays["X"]


def _read_evaluation(saved: Folder, fingerprint: str) -> AdvisorEvaluation | None:
    """The evaluation, which must be of the advisor of this fingerprint; None if there is none."""
    if "evaluation.json" not in saved.files:
        return None
    with readable("evaluation.json"):
        record = parse_json(saved.files["evaluation.json"].decode("utf-8"), "evaluation.json")
        advisor = record.pop("advisor")
        evaluation = AdvisorEvaluation.from_json(json.dumps(record))
    if advisor != fingerprint:
        raise UnreadableError(f"its evaluation is of another advisor: {advisor!r}")
    return evaluation


def _committee(part: Any) -> Committee | None:
    """The committee of a searcher; None if it has none."""
    return part.committee if isinstance(part, SurvivalSearch) else None


def _share_committee(
    saved: Folder, searcher: Searcher, policy: Policy, background: Background
) -> None:
    """Give the searcher, and that of the policy, the committee that was written with them."""
    folder = saved.under("committee")
    if not folder.files or not isinstance(searcher, SurvivalSearch):
        return
    shown = background.unaligned if searcher.all_features else background
    committee = Committee.from_folder(folder, shown.predictor)
    own = [
        part for part in policy.get_params(deep=False).values() if isinstance(part, SurvivalSearch)
    ]
    for part in (searcher, *own):
        part.set_params(committee=committee)


def _read(saved: Folder, name: str, noun: Any) -> Any:
    """A noun from its JSON; None if there is no such file."""
    if (content := saved.files.get(f"{name}.json")) is None:
        return None
    with readable(f"{name}.json"):
        return noun.from_json(content.decode("utf-8"))


def _describe(part: Policy | Searcher) -> dict[str, Any]:
    """The name and the settings that make the same part again."""
    kinds = {"policy": POLICIES, "searcher": SEARCHERS}
    role = "policy" if isinstance(part, Policy) else "searcher"
    settings = {
        name: _plain(part, name, value) for name, value in part.get_params(deep=False).items()
    }
    return {"role": role, "name": kinds[role].name_of(type(part)), "settings": settings}


def _plain(part: Policy | Searcher, name: str, value: Any) -> Any:
    """A setting as JSON; nouns and parts as a mapping with their kind."""
    if isinstance(value, Blanket | Rules):
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
            f"an advisor with this {type(part).__name__} cannot be saved: its {name} is "
            "no plain setting; "
            "give it by name"
        )
    return value


def _make(description: dict[str, Any]) -> Any:
    """The part that ``_describe`` described, not fitted."""
    registry: Any = {"policy": POLICIES, "searcher": SEARCHERS}[description["role"]]
    return registry[description["name"]](
        **{n: _value(v) for n, v in description["settings"].items()}
    )


def _value(setting: Any) -> Any:
    if isinstance(setting, list):
        return tuple(setting)
    if not isinstance(setting, dict) or "kind" not in setting:
        return setting
    if setting["kind"] == "part":
        return _make(setting["content"])
    nouns: dict[str, Any] = {"Blanket": Blanket, "Rules": Rules}
    return nouns[setting["kind"]].from_json(json.dumps(setting["content"]))
