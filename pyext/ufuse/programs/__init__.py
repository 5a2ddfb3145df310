"""How does a loop of Python's become native?

``reading`` says what the text of a loop does, ``looped`` makes the code in which loops may go on
natively, and in which Python goes on where they stop.
"""
