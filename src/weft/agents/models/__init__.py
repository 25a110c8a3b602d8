"""Language models: their aliases, the wires that reach them, and the step that asks one.

    aliases  prices         what a program says about a model
    transport  event_stream requests to a provider, and its answer as it comes
    answers  failures       what a provider's answer means: a reply, another attempt, another model, the end
    chat  responses         the formats of providers
    ports                   from an alias to the wire that reaches it
    step                    the built-in step ``weft.model``

Only programs that declare a model import any of this.
"""
