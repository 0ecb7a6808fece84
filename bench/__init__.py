"""Measurements: how fast a trace is collected, what that costs in memory, and how fast its pages answer. Not part of the tests."""
