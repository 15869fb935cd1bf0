"""The tables of interviews: each interview, its events in order, and the requests that may be sent
again.
"""

import sqlalchemy as sa

__all__ = ["ABOUT", "EVENTS", "INTERVIEWS", "METADATA", "REPLIES"]

METADATA = sa.MetaData()
ABOUT = sa.Table(
    "edfa_web",
    METADATA,
    sa.Column("key", sa.String(32), primary_key=True),
    sa.Column("value", sa.Text, nullable=False),
)
INTERVIEWS = sa.Table(
    "interviews",
    METADATA,
    sa.Column("id", sa.String(32), primary_key=True),
    sa.Column(
        "token", sa.String(64), nullable=True, unique=True
    ),  # its hash; none once the interview is deleted
    sa.Column("advisor", sa.String(64), nullable=False),
    sa.Column("began", sa.DateTime, nullable=False, index=True),
    sa.Column("changed", sa.DateTime, nullable=False),
    sa.Column("finished", sa.Boolean, nullable=False, default=False),
    sa.Column("deleted", sa.DateTime, nullable=True),
)
EVENTS = sa.Table(
    "events",
    METADATA,
    sa.Column("interview", sa.String(32), sa.ForeignKey("interviews.id"), primary_key=True),
    sa.Column("seq", sa.Integer, primary_key=True),
    sa.Column("time", sa.DateTime, nullable=False, index=True),
    sa.Column("kind", sa.String(16), nullable=False, index=True),
    sa.Column("content", sa.Text, nullable=False),
)
REPLIES = sa.Table(
    "replies",
    METADATA,
    sa.Column("interview", sa.String(32), sa.ForeignKey("interviews.id"), primary_key=True),
    sa.Column("key", sa.String(64), primary_key=True),  # hash of an Idempotency-Key
    sa.Column("body", sa.String(64), nullable=False),  # hash of the request's body
    sa.Column("time", sa.DateTime, nullable=False),
    sa.Column("seq", sa.Integer, nullable=False),  # the number of events after it
)
