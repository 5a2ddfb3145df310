"""One traced call: what runs where the function calls something, and what becomes of its values.

``twin`` is the function whose call sites ask; ``callees`` answers them, with the native forms of
``handlers`` and ``methods``; ``tree`` and ``escape`` see to it that arguments are lazy inside and
nothing is outside; ``run`` puts the steps of a call together.
"""
