from .advisor import Advisor as Advisor
from .batch_file import advise_file as advise_file
from .interview import Interview as Interview
from .receipt import Receipt as Receipt
