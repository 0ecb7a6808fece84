"""Names of functions from symbol files (PDB) that the user has, found by their identity. Nothing here asks a network."""

from collector.symbols.builds import Builds, LoadedImage
from collector.symbols.files import Found, Symbols
from collector.symbols.identity import PdbId
from collector.symbols.names import frame_name
from collector.symbols.reading import PdbError, Place

__all__ = ["Builds", "Found", "LoadedImage", "PdbError", "PdbId", "Place", "Symbols", "frame_name"]
