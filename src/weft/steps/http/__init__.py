"""Steps that are HTTP calls: one guarded client, the nodes of graphs and the steps of goals that use it.

    addresses  guard    who may be called, and that nobody else is connected to
    exchange   client   wire       requests and answers as values, and how one becomes the other
    outcome    inflate  content    what an answer means: outputs, a retry, a failure
    node       step     health     what a graph, a goal and the catalogue call
    webhooks                       the addresses of late answers, and the proof that the right callee sent them

Only `guard` and `wire` import aiohttp, and only the first call does: `import weft` must not pay for it.
"""
