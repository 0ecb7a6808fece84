"""The collector's verbs, in the order of the help."""

from collector.verbs import backup, collect, delete, export, inspect, join, launch, list, migrate, record, send, symbols

__all__ = ["VERBS"]

VERBS = (collect, inspect, join, list, record, launch, send, symbols, delete, export, backup, migrate)
"""Modules with `add(verbs)`, which declares the verb and names the function that runs it. Heavy imports wait for that function."""
