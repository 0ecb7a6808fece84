"""Amounts by which the collector decides what to store, and pages how to read it."""

__all__ = ["FEW_OPERATIONS", "LARGE_BYTES", "LIFETIME_LIMITS", "MOST_LABEL", "SIZE_LIMITS"]

FEW_OPERATIONS = 800
"""Sockets with at most so many operations have no roll-ups of their own: reading their operations costs a page no more than its buckets."""

LARGE_BYTES = 65_536
"""What is larger is found by an index of its own where an address lies inside; the rest begins at most so far below."""

SIZE_LIMITS = (0, *(1 << power for power in range(4, 21)))
"""Upper limits of the classes by which blocks are counted by size, in bytes; the last class has none."""

LIFETIME_LIMITS = (1_000, 10_000, 100_000, 1_000_000, 10_000_000, 100_000_000, 1_000_000_000, 10_000_000_000)
"""Limits between the classes by lifetime, in ns; a lifetime of exactly a limit belongs to the class above it."""

MOST_LABEL = 200
"""Characters of the label of a trace."""
