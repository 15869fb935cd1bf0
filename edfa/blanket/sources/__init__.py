"""Where the rows of a table are: in memory, in Parquet files (DuckDB), or in a Dask frame.

Every source answers the two questions that tests ask of a table (``base.py``, read first): how
often each combination of a few columns occurs, and how the columns' terms correlate
(``correlation.py``). ``open.py`` makes a source of whatever ``discover`` is given.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
