"""Odd and hostile traces, whole kinds of them, through the whole collector: what is said, and that the rest is right."""
