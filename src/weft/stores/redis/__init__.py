"""Redis beside a store: wake-ups, limits, and streams for workers. It holds nothing that a store would miss."""
