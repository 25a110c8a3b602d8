"""Extras: packages that are installed only on request, and the error where one is missing.

The names are those of `[project.optional-dependencies]` in pyproject.toml. Call `require`
before importing one of these packages, so that the error comes before anything is started.
"""

from __future__ import annotations

from importlib.util import find_spec
from typing import Final

from weft.errors import MissingExtra

MODULES: Final[dict[str, tuple[str, ...]]] = {
    "http": ("aiohttp",),
    "langchain": ("langchain_core",),
    "lua": ("lupa",),
    "mcp": ("aiohttp", "anyio", "httpx2", "mcp", "mcp_types"),
    "openai-agents": ("agents",),
    "otel": ("opentelemetry",),
    "postgres": ("asyncpg",),
    "pydantic-ai": ("pydantic_ai",),
    "redis": ("hiredis", "redis"),
    "s3": ("obstore",),
    "sandbox": ("pydantic_monty",),
    "server": ("aiohttp", "cryptography", "httptools", "jwt", "prometheus_client", "uvicorn", "websockets"),
    "tables": ("jq", "re2"),
}


def require(extra: str, what: str) -> None:
    """Refuse to go on if an extra is not installed. `what` needs it, and begins the message.

    Raises:
        MissingExtra: it names the packages, and the command that installs them.
    """
    missing = [module for module in MODULES[extra] if find_spec(module) is None]
    if missing:
        raise MissingExtra(
            f"{what} needs packages that are not installed: {', '.join(missing)}.",
            hint=f'Install them: pip install "weft[{extra}]"',
        )
