"""Where the rows of a table are: in memory, in Parquet files (DuckDB), or in a Dask frame.

Every source answers the two questions that tests ask of a table: how often each combination of a
few columns occurs, and how the columns' terms correlate.
"""

import lazy_loader

__getattr__, __dir__, __all__ = lazy_loader.attach_stub(__name__, __file__)
