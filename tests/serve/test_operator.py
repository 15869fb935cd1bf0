"""The operator's view against interviews whose numbers are known; small groups stay hidden."""

import os
import re
from datetime import datetime, timedelta

import advisors
import pytest
from web_service import HERE, OPERATOR, bearer, begin, refused_person, serving, to_the_end

from edfa.certification.monitor import Monitor
from edfa_serve.statistics import hide_small, summarise
from edfa_serve.store import Event, StoredInterview, utc_now


def record(number, *events, began=None, finished=False):
    began = began or datetime(2026, 3, 1, 12)
    numbered = tuple(Event(i, began, kind, content) for i, (kind, content) in enumerate(events, 1))
    return StoredInterview(str(number), "advisor", began, finished, numbered)


def shown(outcome, status, **more):
    return ("shown", {"outcome": outcome, "status": status} | more)


START = ("start", {"facts": {"sex": "female"}})


def test_counts_of_interviews_that_are_known():
    records = [
        record(
            1,
            START,
            ("answer", {"facts": {"a": 1}}),
            shown("bad", "act", refusal_shown=True),
            ("let_down", {}),
        ),
        record(
            2, START, ("decline", {"name": "a"}), shown("bad", "ask"), ("stop", {}), finished=True
        ),
        record(
            3, ("start", {"facts": {"sex": "male"}}), shown("good", "granted"), ("let_down", {})
        ),
        record(4, began=datetime(2026, 3, 2)),
    ]
    summary = summarise(iter(records), ("sex",), ("bad",))
    assert (summary.interviews, summary.finished, summary.acting) == (4, 1, 1)
    assert (summary.let_down, summary.other_let_down) == (1, 1)
    assert summary.days == {"2026-03-01": 3, "2026-03-02": 1}
    assert summary.steps == {(1, "act"): 1, (1, "stopped"): 1, (0, "open"): 2}
    assert (summary.declined, summary.asked) == ({"a": 1}, {"a": 2})
    assert summary.groups == {"sex": {"female": [2, 2, 1], "male": [1, 0, 0]}}


def test_a_letter_is_due_thirty_days_after_a_refusal_was_shown():
    now = utc_now()
    refusal = shown("bad", "ask", refusal_shown=True)
    records = [
        record(1, START, refusal, began=now - timedelta(days=31)),
        record(2, START, refusal, ("letter", {}), began=now - timedelta(days=31)),
        record(3, START, refusal, began=now - timedelta(days=3)),
        record(4, START, shown("bad", "ask"), began=now - timedelta(days=3)),
    ]
    summary = summarise(records, (), ("bad",))
    assert (summary.owed, summary.overdue) == (2, 1)
    assert [(due.interview, (due.until - now).days) for due in summary.due] == [
        ("1", -1),
        ("3", 27),
    ]


def test_of_many_interviews_little_is_kept():
    refusal = shown("bad", "ask", refusal_shown=True)
    many = (
        record(n, ("start", {"facts": {"sex": f"level {n}"}}), ("decline", {"name": "a"}), refusal)
        for n in range(5_000)
    )
    summary = summarise(many, ("sex",), ("bad",))
    assert summary.owed == 5_000
    assert len(summary.due) == 50
    assert len(summary.groups["sex"]) == 51


@pytest.mark.parametrize(
    ("counts", "left"),
    [
        ({"a": 19, "b": 20}, []),
        ({"a": 20, "b": 20}, ["a", "b"]),
        ({"a": 3, "b": 4, "c": 90}, ["c"]),
        ({"a": 3, "b": 40, "c": 90}, ["c"]),
        ({"a": 3}, []),
    ],
)
def test_cells_of_few_people_are_hidden_and_cannot_be_worked_out(counts, left):
    cells = hide_small({level: [count, 1, 1] for level, count in counts.items()})
    assert [level for level, cell in cells.items() if cell is not None] == left


def test_the_view_shows_what_happened(tmp_path):
    monitor = Monitor(alpha=0.2, advisor=advisors.surviving().fingerprint).audit([1] * 12)
    (tmp_path / "monitor.json").write_text(monitor.to_json(), encoding="utf-8")
    with serving(tmp_path / "a.sqlite", monitor=tmp_path / "monitor.json") as client:
        headers, state = begin(client)
        state = to_the_end(client, headers, state)
        client.post(f"{HERE}/let-down", json={}, headers=headers)
        declined, other = begin(client)
        client.post(
            f"{HERE}/declines", json={"feature": other["question"]["feature"]}, headers=declined
        )
        page = client.get("/operator", headers=bearer(OPERATOR)).text
        label = advisors.surviving().schema[other["question"]["feature"]].title
        assert "ALARM. Alarm after" in page
        assert state["id"] in page
        assert f'<th scope="row">{label}</th><td class="n">1</td>' in page
        reported = re.findall(r"(\d+) reported that|reported it: (\d+)", page)
        assert sum(int(number or 0) for numbers in reported for number in numbers) == 1
        assert "fewer than 20" in page or "No group is known" in page
        audit = client.post(
            "/operator/audit", data={"interview": state["id"]}, headers=bearer(OPERATOR)
        ).text
        for kind in ("start", "answer", "shown", "let_down"):
            assert f"<td>{kind}</td>" in audit
        assert (
            client.post(
                "/operator/audit", data={"interview": "x"}, headers=bearer(OPERATOR)
            ).status_code
            == 404
        )
        assert client.post("/operator/audit", data={"interview": state["id"]}).status_code == 401
        gone = client.delete(HERE, headers=headers)
        assert gone.status_code == 204
        assert (
            client.post(
                "/operator/audit", data={"interview": state["id"]}, headers=bearer(OPERATOR)
            ).status_code
            == 404
        )


def test_what_people_write_is_escaped(tmp_path):
    with serving(tmp_path / "a.sqlite") as client:
        evil = "<script>alert(1)</script>"
        headers = bearer(
            client.post("/api/v1/interviews", json={"facts": {"own_telephone": evil}}).json()[
                "token"
            ]
        )
        key = client.get(HERE, headers=headers).json()["id"]
        page = client.post(
            "/operator/audit", data={"interview": key}, headers=bearer(OPERATOR)
        ).text
        assert evil not in page
        assert "&lt;script&gt;alert(1)&lt;/script&gt;" in page


def test_metrics_count_requests_and_interviews(tmp_path):
    with serving(tmp_path / "a.sqlite") as client:
        headers, state = begin(client)
        client.post(
            f"{HERE}/declines", json={"feature": state["question"]["feature"]}, headers=headers
        )
        client.post(f"{HERE}/stop", json={}, headers=headers)
        client.get("/nowhere")
        text = client.get("/metrics", headers=bearer(OPERATOR)).text
    own = f'process="{os.getpid()}",'
    assert own in text
    assert all(
        ", of this process since it began." in line
        for line in text.splitlines()
        if "HELP edfa_req" in line
    )
    lines = dict(
        line.replace(own, "").rsplit(" ", 1)
        for line in text.splitlines()
        if not line.startswith("#")
    )
    assert (
        lines['edfa_requests_total{method="POST",route="/api/v1/interviews",status="201"}'] == "1"
    )
    assert lines['edfa_requests_total{method="GET",route="-",status="404"}'] == "1"
    assert lines['edfa_events_total{kind="decline"}'] == "1"
    assert (
        lines['edfa_interviews{state="begun"}'] == lines['edfa_interviews{state="finished"}'] == "1"
    )
    name = 'edfa_request_seconds_bucket{route="/api/v1/interviews",le="+Inf"}'
    assert lines[name] == lines['edfa_request_seconds_count{route="/api/v1/interviews"}'] == "1"
    assert refused_person()
