"""One decision path for one person and for a million: Advisor, Interview, files of people,
receipts.

Read ``advisor.py`` first (how the parts are fitted together), then ``assessment.py`` (what is said
of partly known people) and ``interview.py``; ``batch.py`` says the same of a file. The promise is
``fitted.py`` (what is promised, and everything that was learnt), ``signals.py`` (how sure one is of
each ending), ``promise.py`` (how a state of the advisor is certified from people, and who judges
their plans), ``calibration_people.py`` (who these people are), and ``standing.py`` (may this
interview end). ``persist.py`` saves and loads.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
