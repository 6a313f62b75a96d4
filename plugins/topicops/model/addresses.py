"""Hosts and ports as one text."""

from __future__ import annotations

from ipaddress import IPv6Address


def address(host: str, port: int) -> str:
    """``host:port``; an IPv6 address stands in brackets, because it has colons of its own."""
    return f"{bracketed(host)}:{port}"


def bracketed(text: str) -> str:
    """An IPv6 address in brackets; any other text as it is, one with a port too."""
    try:
        IPv6Address(text)
    except ValueError:
        return text
    return f"[{text}]"
