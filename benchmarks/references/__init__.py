"""The inputs of every operator, and single elements of its result in float64, to check a contender's output against.

Runs in the peers' environment, for it needs NumPy. The inputs follow what `tilewright` fills in when it is given none: floats
between -1 and 1, indices uniform over the table. One module for each kind of operator; comparison.py is what uses them.
"""
