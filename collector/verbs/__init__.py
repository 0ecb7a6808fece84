"""The collector's verbs, in the order of the help."""

from collector.verbs import backup, collect, delete, export, inspect, join, label, launch, list, migrate, prune, record, send, symbols

__all__ = ["VERBS"]

VERBS = (collect, inspect, join, list, record, launch, send, symbols, label, delete, prune, export, backup, migrate)
"""Modules with `add(verbs)`, which declares the verb and names the function that runs it. Heavy imports wait for that function."""
