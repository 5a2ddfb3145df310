"""NumPy, each call run through ufuse at once: ``import ufuse.numpy as np``.

Every name of NumPy is here, submodules included; results are ordinary ndarrays and NumPy scalars.
There is no capture across calls and no compiler, so this module shows whether a wrong answer is the
program's own. ``UFUSE_DEBUG=check`` compares each call with NumPy's.
"""

import sys

import numpy

from ufuse.namespace import EagerModule, Finder, fill

fill(sys.modules[__name__], numpy)
sys.meta_path.append(Finder)
sys.modules[__name__].__class__ = EagerModule
