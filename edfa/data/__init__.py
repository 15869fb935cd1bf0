"""What is known about a person, what it costs to ask, and which way is good."""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
