# For type checkers this module is NumPy.
from numpy import *  # noqa: F403
from numpy import __version__ as __version__
