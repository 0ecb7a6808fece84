"""Hostile bytes, made by the thousand: targets, seeds, mutations, and the fuzzer that looks for what nobody thought of."""
