"""Hostile folders: saved things with files that are missing, cut off, emptied, flipped, swapped,
added or linked.

``rehash`` makes the manifests fit again, as somebody would who wants a changed folder to pass.
"""

import hashlib
import json
import os
from functools import cache
from pathlib import Path

from hypothesis import strategies as st

import edfa
from edfa.artifacts import SEAL, make_manifest
from edfa.data.synthetic import credit_story
from edfa.writing import list_files

MANIFEST = "manifest.json"


def rehash(folder, **changes):
    """Bring the hashes in all manifests of a folder up to date, innermost first, and change entries
    of the outermost.

    Files that are gone are no longer named.
    """
    for path in sorted(
        (path for path in folder.rglob(MANIFEST) if path.is_file()),
        key=lambda path: -len(path.parts),
    ):
        try:
            manifest = json.loads(path.read_text(encoding="utf-8"))
            named = [name for name in manifest["sha256"] if (path.parent / name).is_file()]
        except (ValueError, KeyError, TypeError, RecursionError):
            continue
        parts = {name: (path.parent / name).read_bytes() for name in named}
        if path.parent == folder:
            manifest |= changes
        manifest.pop(SEAL, None)
        path.write_text(make_manifest(manifest, parts), encoding="utf-8")


def flip(path, bit):
    """Flip one bit of a file, counted from its start."""
    content = bytearray(path.read_bytes())
    content[bit // 8] ^= 1 << bit % 8
    path.write_bytes(content)


def _missing(folder, name, other, share):
    (folder / name).unlink()


def _cut_off(folder, name, other, share):
    content = (folder / name).read_bytes()
    (folder / name).write_bytes(content[: int(share * len(content))])


def _emptied(folder, name, other, share):
    (folder / name).write_bytes(b"")


def _longer(folder, name, other, share):
    with (folder / name).open("ab") as file:
        file.write(b"\0" * (1 + int(share * 100)))


def _flipped(folder, name, other, share):
    size = (folder / name).stat().st_size
    if size:
        flip(folder / name, int(share * size * 8))


def _swapped(folder, name, other, share):
    first, second = ((folder / part).read_bytes() for part in (name, other))
    (folder / name).write_bytes(second)
    (folder / other).write_bytes(first)


def _another(folder, name, other, share):
    (folder / name).write_bytes((folder / other).read_bytes())


def _a_folder(folder, name, other, share):
    (folder / name).unlink()
    (folder / name).mkdir()


def _linked(folder, name, other, share):
    target = folder.parent / f"{hashlib.sha256(name.encode()).hexdigest()}.elsewhere"
    target.write_bytes((folder / other).read_bytes())
    (folder / name).unlink()
    (folder / name).symlink_to(target)


def _dangling(folder, name, other, share):
    (folder / name).unlink()
    (folder / name).symlink_to(folder / "nowhere")


def _pipe(folder, name, other, share):
    (folder / name).unlink()
    os.mkfifo(folder / name)


def _extra(folder, name, other, share):
    path = folder / Path(name).parent / f"more_{Path(name).name}"
    path.write_bytes((folder / other).read_bytes())


DAMAGES = (
    _missing,
    _cut_off,
    _emptied,
    _longer,
    _flipped,
    _swapped,
    _another,
    _a_folder,
    _linked,
    _dangling,
    _pipe,
    _extra,
)


def damages(folder):
    """Strategies of functions that damage a copy of ``folder``, which has several files; their
    ``repr`` says how.
    """
    names = st.sampled_from(list_files(folder))
    return st.builds(
        Damage, st.sampled_from(DAMAGES), names, names, st.floats(0, 1, exclude_max=True)
    )


class Damage:
    """One way to damage a folder: a kind, the file, another file of the same folder, and how far
    into the file.
    """

    def __init__(self, kind, name, other, share):
        self.kind, self.name, self.other, self.share = kind, name, other, share

    def __call__(self, folder):
        """Damage a folder; a file that an earlier damage has removed is left alone."""
        if (folder / self.name).is_file() and (folder / self.other).is_file():
            self.kind(folder, self.name, self.other, self.share)

    def __repr__(self):
        return f"{self.kind.__name__.strip('_')} {self.name} ({self.other}, {self.share:.3f})"


@cache
def tiny():
    """A small advisor that has every kind of part: mixed models, a committee, judges, a learnt
    order, a certificate.
    """
    table = credit_story().table(500)
    model = edfa.SubsetXGB("mixed", n_estimators=4, max_depth=2)
    return edfa.Advisor(predictor=model, committee=2, threshold="balanced").fit(table, n_jobs=1)


def ask_people(advisor, count=4):
    """What an advisor asks, decides and plans for some of its training people, as plain values."""
    said = []
    for person in (
        advisor.fitted.train.frame.drop(columns=advisor.schema.target)
        .head(count)
        .to_dict("records")
    ):
        interview = advisor.interview({name: person[name] for name in advisor.schema.start})
        while (asked := interview.question) is not None:
            said.append((asked.feature, interview.decision.outcome, interview.decision.probability))
            interview.answer({asked.feature: person[asked.feature]})
        said.append((interview.decision.outcome, [str(plan) for plan in interview.plans(k=2)]))
    return said
