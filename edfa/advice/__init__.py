"""One decision path for one person and for a million: Advisor, Interview, files of people,
receipts.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
