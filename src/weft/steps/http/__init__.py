"""HTTP calls: a client that refuses private addresses, and the nodes of graphs and steps of goals that use it.

    addresses  guard    which addresses may be called
    exchange   client   wire       requests and responses, and how they are sent
    outcome    inflate  content    what a response means: outputs, a retry, a failure
    node       step     health     what graphs, goals and the catalogue use
    webhooks                       URLs for answers that come later, and their signatures

Only ``guard`` and ``wire`` import aiohttp, with the first call, because it is slow to import.
"""
