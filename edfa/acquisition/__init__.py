"""Which feature to ask for next: one policy a file.

``acquire`` (``loop.py``) asks people by a policy and gives a ``Trajectory``. ``EDFA`` is the policy
of the paper; ``Greedy``, ``Random`` and ``Fixed`` are plain ones, ``SurvivalPolicy`` asks for what
makes advice last, and ``DIME``, ``EDDI`` and ``GSMRL`` are the field's, which train networks.
"""

from typing import TYPE_CHECKING

import lazy_loader

from edfa.settings import Registry

if TYPE_CHECKING:
    from edfa.acquisition.base import Policy

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)

POLICIES: Registry["Policy"] = Registry(
    "policy",
    {
        "edfa": "edfa.acquisition.edfa:EDFA",
        "random": "edfa.acquisition.random:Random",
        "random-blanket": "edfa.acquisition.random:RandomBlanket",
        "greedy": "edfa.acquisition.greedy:Greedy",
        "fixed": "edfa.acquisition.fixed:Fixed",
        "survival": "edfa.acquisition.survival:SurvivalPolicy",
        "dime": "edfa.acquisition.dime:DIME",
        "eddi": "edfa.acquisition.eddi:EDDI",
        "gsmrl": "edfa.acquisition.gsmrl:GSMRL",
    },
)
"""What the command line and study files call each policy; a new one is one file and one line here.
"""
__all__ = [*__all__, "POLICIES"]
