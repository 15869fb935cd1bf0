"""A fitted advisor as a folder: JSON, safetensors, UBJSON and Parquet, each part with its hash. No
pickle, ever. ``save`` and ``load`` are the entries.

Writing is all or nothing: killed at any moment, a save leaves the advisor that was there before, or
the new one. What is read must be the advisor that it says it is: its fingerprint is worked out
again from all that it was made of. Every file is read once and checked against its hash; what was
checked is what is parsed afterwards.
"""

import io
import json
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from typing import Any, Literal

import numpy as np
import pandas as pd

from edfa.acquisition import POLICIES
from edfa.acquisition.base import Policy
from edfa.advice.evaluation import AdvisorEvaluation
from edfa.advice.fitted import Ending, FittedAdvisor, Promise, identify_advisor
from edfa.advice.receipt import versions
from edfa.artifacts import (
    MANIFEST,
    MAX_FOLDER_BYTES,
    Folder,
    check_arrays,
    check_replaceable,
    load_arrays,
    read_folder,
    readable,
    save_arrays,
    write_manifest,
)
from edfa.blanket.units import Blanket
from edfa.certification.certificate import Certificate, GroupCertificates
from edfa.certification.endings import ENDINGS, LOSS_OF
from edfa.certification.records import REFERENCES, Loss, Reference
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
from edfa.reading import first_line, parse, parse_json
from edfa.recourse import SEARCHERS
from edfa.recourse.outlook import Outlook
from edfa.recourse.searcher import Searcher
from edfa.recourse.searchers.survival import SurvivalSearch
from edfa.writing import replace_folder

KIND = "Advisor"
NEEDED = (
    "schema.json",
    "encoder.json",
    "blanket.json",
    "rules.json",
    "train.parquet",
    "calibration.safetensors",
    "model/manifest.json",
)


def people_to_parquet(frame: pd.DataFrame) -> bytes:
    """The rows of a table as the content of a Parquet file, with the data types of its columns."""
    content = io.BytesIO()
    frame.to_parquet(content, index=False)
    return content.getvalue()


def people_from_parquet(content: bytes, name: str, limit: int = MAX_FOLDER_BYTES) -> pd.DataFrame:
    """The rows that ``people_to_parquet`` wrote.

    Parameters
    ----------
    content
        The bytes of a Parquet file.
    name
        What error messages begin with.
    limit
        The largest number of bytes that the rows may take. The size is worked out before any memory
        is taken for it: a small file may unpack to any number of rows, and a word that is written
        once may stand in every one of them.

    Raises
    ------
    UnreadableError
        If the file is damaged, or the rows would take more bytes.
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
            if sum(group.total_byte_size * group.num_rows for group in groups) > limit:
                # One word may fill all rows: they are counted before they are written out.
                words = [f.name for f in columns if f.type in (pa.string(), pa.large_string())]
                coded = pq.read_table(
                    pa.BufferReader(content), columns=words, read_dictionary=words
                )
                _bound(sum(map(_written_out, coded.columns)), name, limit)
            return pd.read_parquet(io.BytesIO(content))
        except (pa.ArrowException, OSError, MemoryError) as error:
            raise UnreadableError(f"{name} is damaged: {first_line(error)}") from None


def _bound(size: int, name: str, limit: int) -> None:
    """Raise UnreadableError for a part that takes more than ``limit`` bytes."""
    if size > limit:
        raise UnreadableError(f"{name} unpacks to {size:,} bytes; at most {limit:,} are read")


def _written_out(column: Any) -> int:
    """The bytes that a dictionary-coded column of words takes once every row has its own, at
    least.
    """
    import pyarrow.compute as pc

    return sum(
        pc.sum(pc.binary_length(chunk.dictionary).take(chunk.indices)).as_py() or 0
        for chunk in column.chunks
    )


CALIBRATION_FILE = "calibration.safetensors"
OUTLOOK_FILE = "outlook.safetensors"
ALPHAS = {"granted": "alpha_granted", "act": "alpha", "nothing": "alpha_nothing"}
NOUNS: dict[str, Any] = {  # by the name of their JSON file
    "schema": Schema,
    "encoder": Encoder,
    "blanket": Blanket,
    "rules": Rules,
    "directions": DirectionCheck,
}
Number = int | float  # one that was written as 0 is read as 0, not as 0.0


@dataclass(frozen=True)
class PlainSettings:
    """The plain settings of an advisor, with the names of its keywords; its parts are described
    by their class and their own settings.
    """

    signal: str | None
    budget: Number | Literal["inf"]
    alpha: Number
    delta: Number
    target: Target
    reference: Reference | Literal["auto"]
    committee: int
    min_survival: Number
    max_excess: Number
    alpha_granted: Number
    alpha_nothing: Number
    loss: Loss
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

    Parameters
    ----------
    fitted
        What the advisor has learnt.
    settings
        Its plain settings; those of its parts are read off ``fitted``.
    evaluation
        How it did on test people, if that was measured.
    folder
        The folder to write.

    Raises
    ------
    MismatchError
        If something was changed since it was fitted, so that it is not the advisor that its
        fingerprint names.
    """
    root = Path(folder)
    check_replaceable(root, KIND)
    if fitted.fingerprint != identify_advisor(fitted):
        raise MismatchError(
            "this advisor is not the one that was fitted: one of its parts was changed; "
            "fit it again"
        )
    manifest: dict[str, Any] = {
        "made_with": dict(fitted.made_with or versions()),
        "fingerprint": fitted.fingerprint,
        "table": {
            "name": fitted.train.name,
            "seed": fitted.train.seed,
            "shares": fitted.train.shares,
        },
        "settings": asdict(settings),
        "signals": {ending.name: ending.signal for ending in fitted.promise.endings},
        "reference": fitted.promise.reference,
        "ended_by": list(fitted.promise.ended_by),
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
        write_manifest(partial, KIND, manifest)


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
    if not root.is_dir():
        beside = root.absolute().parent
        names = [path.name for path in beside.iterdir()] if beside.is_dir() else []
        raise UnreadableError(f"there is no folder {root}{did_you_mean(root.name, names)}")
    manifest, saved = read_folder(root, KIND)
    if missing := [name for name in NEEDED if name not in saved.files]:
        raise UnreadableError(f"{root}: the part {missing[0]} is missing")
    try:
        with readable(f"what its {MANIFEST} describes"):
            settings = parse(PlainSettings, manifest["settings"], "settings", UnreadableError)
            fitted = _assemble(saved, manifest, settings, model)
            _check_identity(fitted)
            return fitted, settings, _read_evaluation(saved, fitted.fingerprint)
    except UnreadableError as error:
        raise UnreadableError(f"{root} holds no whole advisor: {error}") from None


def _check_identity(fitted: FittedAdvisor) -> None:
    """Raise UnreadableError unless an advisor is what its fingerprint says, and its certificates
    are its own.

    Where it was made with other versions of libraries, the message says so: that changes the
    fingerprint.
    """
    if identify_advisor(fitted) != fitted.fingerprint:
        changed = {k: v for k, v in (fitted.made_with or {}).items() if versions().get(k) != v}
        hint = f"; it was made with {changed}, which may be why" if changed else ""
        raise UnreadableError(f"it is not the advisor it says it is, {fitted.fingerprint}{hint}")
    promise = fitted.promise
    for ending in promise.endings:
        made, grouped = ending.certificate, isinstance(ending.certificate, GroupCertificates)
        if made is not None and grouped != (promise.groups is not None):
            raise UnreadableError(
                "it has a certificate for all people and groups, or certificates of groups "
                "without groups"
            )
        for label, certificate in ending.certificates.items():
            own = promise.check_owner(certificate, fitted.fingerprint, ending)
            if not own or certificate.group != label:
                about = (
                    f"{certificate.advisor!r}, {certificate.signal}, {certificate.loss}, "
                    f"{certificate.reference}, {certificate.group}"
                )
                raise UnreadableError(f"its certificate is of another advisor or group: {about}")


def _write_parts(
    fitted: FittedAdvisor, evaluation: AdvisorEvaluation | None, partial: Path
) -> None:
    """Write everything but the manifest.

    Parameters
    ----------
    fitted
        What the advisor has learnt: nouns become JSON files, the training part Parquet, the model,
        the policy, the committee and the judges folders of their own, and the calibration rows a
        file of arrays.
    evaluation
        How it did on test people, if that was measured.
    partial
        The folder, which is empty.
    """
    nouns: dict[str, Any] = {
        "schema": fitted.schema,
        "encoder": fitted.encoder,
        "blanket": fitted.blanket,
        "rules": fitted.operator_rules,
        "directions": fitted.directions,
    }
    for ending in fitted.promise.endings:
        grouped = isinstance(ending.certificate, GroupCertificates)
        nouns[_certificate_file(ending.name, grouped)] = ending.certificate
    for name, noun in nouns.items():
        if noun is not None:
            (partial / f"{name}.json").write_text(noun.to_json(), encoding="utf-8")
    if evaluation is not None:
        record = {"advisor": fitted.fingerprint} | asdict(evaluation)
        (partial / "evaluation.json").write_text(
            json.dumps(record, ensure_ascii=False), encoding="utf-8"
        )
    (partial / "train.parquet").write_bytes(people_to_parquet(fitted.train.frame))
    fitted.model.to_folder(partial / "model")
    fitted.policy.save_state(partial / "policy")
    if isinstance(fitted.searcher, SurvivalSearch) and fitted.searcher.committee is not None:
        fitted.searcher.committee.to_folder(partial / "committee")
    if fitted.judges is not None:
        fitted.judges.to_folder(partial / "judges")
    (partial / CALIBRATION_FILE).write_bytes(save_arrays({"X": fitted.calibration}))
    if fitted.outlook is not None:
        stuck = fitted.outlook.stuck.astype(np.uint8)
        (partial / OUTLOOK_FILE).write_bytes(save_arrays({"stuck": stuck}))


def _certificate_file(ending: str, grouped: bool) -> str:
    """The name of the JSON file of an ending's certificates, without its ending."""
    name = "certificates" if grouped else "certificate"
    return name if ending == "act" else f"{name}_{ending}"


def _assemble(
    saved: Folder, manifest: dict[str, Any], settings: PlainSettings, own: Any
) -> FittedAdvisor:
    """Put an advisor together from a folder that was read.

    Parameters
    ----------
    saved
        The files of the folder.
    manifest, settings
        What its manifest says, and the plain settings in it.
    own
        The user model, where it is in no file.
    """
    nouns = {name: _read(saved, name, noun) for name, noun in NOUNS.items()}
    schema, encoder = nouns["schema"], nouns["encoder"]
    endings = [
        Ending(
            name,
            manifest["signals"][name],
            settings.loss if name == "act" else LOSS_OF[name],
            settings.target if name == "act" else "early",
            getattr(settings, ALPHAS[name]),
            _read_certificate(saved, name),
        )
        for name in (ENDINGS if settings.loss == LOSS_OF["act"] else ENDINGS[1:2])
    ]
    arrays = load_arrays(saved.files[CALIBRATION_FILE], CALIBRATION_FILE)
    check_arrays(arrays, {"X": ("f", None, len(schema))}, CALIBRATION_FILE)
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
    fitted = FittedAdvisor.of(train, model, nouns["blanket"], policy, searcher)
    reference = manifest["reference"]
    if reference not in REFERENCES:
        raise UnreadableError(f"the reference is {reference!r}")
    if not isinstance(manifest["fingerprint"], str):
        raise UnreadableError(f"the fingerprint is {manifest['fingerprint']!r}")
    made_with = dict(manifest["made_with"])
    if not all(isinstance(version, str) for version in made_with.values()):
        raise UnreadableError("made_with has versions as text")
    judges = saved.under("judges")
    outlook = None
    if OUTLOOK_FILE in saved.files:
        neighbours = fitted.completions.neighbours
        arrays |= load_arrays(saved.files[OUTLOOK_FILE], OUTLOOK_FILE)
        check_arrays(arrays, {"stuck": ("u", len(neighbours.rows))}, OUTLOOK_FILE)
        outlook = Outlook(neighbours, arrays["stuck"].astype(bool))
    return replace(
        fitted,
        fingerprint=manifest["fingerprint"],
        promise=Promise(
            tuple(endings),
            settings.delta,
            reference,
            settings.min_survival,
            settings.max_excess,
            settings.groups,
            tuple(map(float, manifest["ended_by"])),
        ),
        outlook=outlook,
        judges=Committee.from_folder(judges, fitted.predictor) if judges.files else None,
        calibration=arrays["X"],
        budget=settings.budget,
        operator_rules=nouns["rules"],
        directions=nouns["directions"],
        made_with=made_with,
    )


def _read_certificate(saved: Folder, ending: str) -> Certificate | GroupCertificates | None:
    """The certificate of an ending, or those of the groups; None if there is none."""
    whole: Certificate | None = _read(saved, _certificate_file(ending, False), Certificate)
    groups = _read(saved, _certificate_file(ending, True), GroupCertificates)
    if whole is not None and groups is not None:
        raise UnreadableError("it has a certificate for all people and certificates of groups")
    return whole if groups is None else groups


def _read_evaluation(saved: Folder, fingerprint: str) -> AdvisorEvaluation | None:
    """The evaluation of an advisor; None if there is none.

    Parameters
    ----------
    saved
        The files of the folder.
    fingerprint
        That of the advisor; an evaluation of another one is an UnreadableError.
    """
    if "evaluation.json" not in saved.files:
        return None
    with readable("evaluation.json"):
        record = parse_json(saved.files["evaluation.json"].decode("utf-8"), "evaluation.json")
        advisor = record.pop("advisor")
        evaluation = parse(AdvisorEvaluation, record, "evaluation")
    if advisor != fingerprint:
        raise UnreadableError(f"its evaluation is of another advisor: {advisor!r}")
    return evaluation


def _share_committee(
    saved: Folder, searcher: Searcher, policy: Policy, background: Background
) -> None:
    """Give the searcher, and that of the policy, the committee that was written with them.

    Parameters
    ----------
    saved
        The files of the folder.
    searcher, policy
        The parts, not fitted.
    background
        The training people and the model as the policy shows it; members of the committee see the
        same, or everything, as the searcher says.
    """
    folder = saved.under("committee")
    if not folder.files or not isinstance(searcher, SurvivalSearch):
        return
    shown = background.unaligned if searcher.all_features else background
    committee = Committee.from_folder(folder, shown.predictor)
    for part in (searcher, *policy.get_params(deep=False).values()):
        if isinstance(part, SurvivalSearch):
            part.set_params(committee=committee)


def _read(saved: Folder, name: str, noun: Any) -> Any:
    """A noun from its JSON; None if there is no such file.

    Parameters
    ----------
    saved
        The files of the folder.
    name, noun
        The name of the file without its ending, and the class.
    """
    if (content := saved.files.get(f"{name}.json")) is None:
        return None
    with readable(f"{name}.json"):
        return noun.from_json(content.decode("utf-8"))


def _describe(part: Policy | Searcher) -> dict[str, Any]:
    """The role, name and settings that ``_make`` makes the same part from again; as JSON data."""
    kinds = {"policy": POLICIES, "searcher": SEARCHERS}
    role = "policy" if isinstance(part, Policy) else "searcher"
    settings = {
        name: _plain(part, name, value) for name, value in part.get_params(deep=False).items()
    }
    return {"role": role, "name": kinds[role].name_of(type(part)), "settings": settings}


def _plain(part: Policy | Searcher, name: str, value: Any) -> Any:
    """A setting as JSON data; nouns and parts as a mapping with their kind.

    Parameters
    ----------
    part, name, value
        The policy or searcher, the name of the setting, and its value.

    Raises
    ------
    SettingError
        If JSON cannot hold the value.
    """
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
            f"an advisor with this {type(part).__name__} cannot be saved: its {name} is no plain "
            "setting; give it by name"
        )
    return value


def _make(description: dict[str, Any]) -> Any:
    """The policy or searcher that ``_describe`` described, not fitted."""
    registry: Any = {"policy": POLICIES, "searcher": SEARCHERS}[description["role"]]
    return registry[description["name"]](
        **{n: _value(v) for n, v in description["settings"].items()}
    )


def _value(setting: Any) -> Any:
    """The value of a setting that ``_plain`` wrote."""
    if isinstance(setting, list):
        return tuple(setting)
    if not isinstance(setting, dict) or "kind" not in setting:
        return setting
    if setting["kind"] == "part":
        return _make(setting["content"])
    noun: Any = {"Blanket": Blanket, "Rules": Rules}[setting["kind"]]
    return noun.from_json(json.dumps(setting["content"]))
