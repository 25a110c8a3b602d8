"""Names with wildcards: ``*`` stands for any characters, ``?`` for one. Pure, and never slow."""

from __future__ import annotations


def is_match(pattern: str, text: str) -> bool:
    """Return whether a whole text matches a pattern. The cost is at most the product of their lengths."""
    at = in_pattern = 0
    star = retry = -1
    while at < len(text):
        wanted = pattern[in_pattern] if in_pattern < len(pattern) else ""
        if wanted == "*":
            star, retry = in_pattern, at
            in_pattern += 1
        elif wanted in (text[at], "?") and wanted:
            at, in_pattern = at + 1, in_pattern + 1
        elif star >= 0:
            # Let the last star stand for one character more.
            retry += 1
            at, in_pattern = retry, star + 1
        else:
            return False
    return all(rest == "*" for rest in pattern[in_pattern:])


def is_host_match(pattern: str, host: str) -> bool:
    """Return whether a host matches a pattern. A pattern without a port matches every port; case does not matter."""
    name, port = split_port(host.lower())
    wanted, wanted_port = split_port(pattern.lower())
    return is_match(wanted, name.rstrip(".")) and (not wanted_port or is_match(wanted_port, port))


def split_port(host: str) -> tuple[str, str]:
    """Split ``api.example:443`` into the host and the port, which is empty if there is none."""
    name, colon, port = host.rpartition(":")
    is_port = bool(colon) and all(each.isdigit() or each in "*?" for each in port) and ":" not in name.strip("[]")
    bracketed = name.startswith("[") and name.endswith("]") and colon
    return (name, port) if is_port or bracketed else (host, "")
