"""The source of a function, and the same source with every call site asking first.

``text`` finds the source and proves that it is the code; ``facts`` reads what it does with its
values; ``sites`` rewrites it and compiles it again; ``kept`` stores the result for other processes.
``operations`` rewrites whole modules, for whoever looks for the first wrong number.
None of them knows of arrays.
"""
