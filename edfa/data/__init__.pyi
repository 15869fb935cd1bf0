from .catalog import load as load
from .clean import clean as clean
from .clean import summarise as summarise
from .encode import Encoder as Encoder
from .feature import Feature as Feature
from .schema import Schema as Schema
from .table import Table as Table
