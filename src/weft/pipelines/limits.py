"""The limits of pipelines. They are the same for every pipeline."""

from typing import Final

STEPS_MAX: Final = 20
DATA_BYTES_MAX: Final = 16 * 1024 * 1024
"""The limit on the data after every step, as JSON."""
ROWS_MAX: Final = 1_000_000
"""The limit on the number of rows after every step."""
TIME_S_MAX: Final = 30.0
MEMORY_BYTES_MAX: Final = 512 * 1024 * 1024
"""The memory that a worker process may use for one pipeline."""

HERE_BYTES_MAX: Final = 1024 * 1024
"""Data up to this size is processed in a thread of this process, unless the steps need a process of their own."""

QUERY_CHARS_MAX: Final = 4_000
PATTERN_CHARS_MAX: Final = 1_000
FORMAT_CHARS_MAX: Final = 100
FIELDS_MAX: Final = 200
HTTP_S_MAX: Final = 30.0
