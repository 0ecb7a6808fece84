"""Winsock AFD: who the provider is."""

from uuid import UUID

__all__ = ["AFD"]

AFD = UUID("e53c6823-7bb8-44bb-90dc-3f86090d48a6")
"""Microsoft-Windows-Winsock-AFD, the kernel driver behind sockets."""
