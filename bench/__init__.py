"""How fast is ufuse, against NumPy and against its peers? See README.md in this folder."""
