"""Load values of the log in full, with all their parts that are stored in blobs."""

from __future__ import annotations

import msgspec

from weft.core import values
from weft.core.run.composites import is_unmarked, open_raw
from weft.core.run.env import MissingInputs
from weft.runtime.service import RunService


async def load_value(service: RunService, raw: bytes) -> bytes:
    """Return the JSON of a value as the log has it. Raises NotFound if a blob is gone."""
    if is_unmarked(raw) or values.is_ref(raw):
        return await service.values.load(raw)
    blobs: dict[str, bytes] = {}
    while True:
        try:
            return msgspec.json.encode(open_raw(raw, blobs.get))
        except MissingInputs as missing:
            for digest in missing.blobs:
                blobs[digest] = await service.values.blob(digest)
