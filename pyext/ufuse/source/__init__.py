"""The source of a function, and the same source with every call site asking first.

``text`` finds the source and proves that it is the code; ``sites`` rewrites it and compiles it
again. Neither knows of arrays.
"""
