"""Worked traces: a few records each, with every row that they must lead to."""
