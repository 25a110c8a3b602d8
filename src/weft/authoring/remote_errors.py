"""What is said about a server that cannot be reached. No message has the password of its URL."""

from __future__ import annotations

import os

import aiohttp

from weft.errors import Unavailable, UsageError
from weft.stores.urls import url_without_password


def wrong_url(url: str, error: Exception) -> UsageError:
    """Return the error for a URL that cannot be connected to, or not safely."""
    said, url = _without_password(error, url), url_without_password(url)
    if isinstance(error, aiohttp.ClientConnectorCertificateError):
        return UsageError(
            f"The certificate of {url} is not valid: {error.certificate_error}.",
            hint="Use the name that is in the certificate. For a certificate authority of your own, set SSL_CERT_FILE.",
            code="usage.certificate",
        )
    if isinstance(error, aiohttp.ClientSSLError):
        return UsageError(
            f"{url} does not speak TLS: {said}.", hint="Check the port, or write http://…", code="usage.certificate"
        )
    return UsageError(f"{url} is not a URL: {said}.", hint="Write https://weft.example.com")


def no_answer(url: str, error: Exception) -> Unavailable:
    """Return the error for a request that was not answered."""
    return Unavailable(
        f"The server at {url_without_password(url)} does not answer ({_reason(error, url) or type(error).__name__}).",
        hint="Is `weft serve` running there? The request may have been carried out; it is safe to repeat it.",
        code="store.no_server",
    )


def _reason(error: Exception, url: str) -> str:
    if isinstance(error, aiohttp.ClientConnectorError):  # its text repeats the address, and names TLS without TLS
        number, text = error.os_error.errno, error.os_error.strerror
        return (os.strerror(number) if number is not None and number > 0 else text or "").lower()
    return _without_password(error, url)


def _without_password(error: Exception, url: str) -> str:
    return str(error).replace(url, url_without_password(url))
