"""Traces inside of packages: zip (also .diagsession), gzip, cabinet and 7z files."""

from collector.packages.unpacking import SUFFIXES, traces_in

__all__ = ["SUFFIXES", "traces_in"]
