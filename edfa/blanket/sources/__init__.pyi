from .base import TableSource as TableSource
from .dask import DaskRows as DaskRows
from .memory import MemoryRows as MemoryRows
from .open import open_source as open_source
from .parquet import ParquetRows as ParquetRows
