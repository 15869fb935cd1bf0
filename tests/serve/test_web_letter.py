"""Letters over the service."""

from pathlib import Path

import pytest
from web_service import HERE, begin, problem, serving, to_the_end

from edfa.errors import EdfaError

LETTER = next(Path(__file__).parents[2].glob("docs/**/letter.toml"))


def test_a_letter_is_written_and_recorded(tmp_path):
    with serving(tmp_path / "a.sqlite", letter=LETTER) as client:
        headers, state = begin(client)
        problem(
            client.post(f"{HERE}/letter", json={}, headers=headers), 422, "unusable"
        )  # nothing is refused yet
        to_the_end(client, headers, state)
        for template in ("us", "eu", None):
            answer = client.post(f"{HERE}/letter", json={"template": template}, headers=headers)
            assert answer.status_code == 200, answer.text
            assert answer.json()["html"].lstrip().lower().startswith("<!doctype html>")
        events = client.app.state.service.store.read(headers["Authorization"].split()[1]).events
    assert [event.content["template"] for event in events if event.kind == "letter"] == [
        "us",
        "eu",
        "us",
    ]
    assert events[-1].content["audit"]


def test_a_wrong_letter_file_is_an_error_at_the_start(tmp_path):
    (tmp_path / "letter.toml").write_text("nothing = 1")
    with pytest.raises(EdfaError), serving(tmp_path / "a.sqlite", letter=tmp_path / "letter.toml"):
        pass
