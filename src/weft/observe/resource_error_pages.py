"""The pages of the errors of resources: what happened, why, what to do."""

from __future__ import annotations

RESOURCE_PAGES: dict[str, tuple[str, str, str]] = {
    "resource.invalid": (
        "A resource, or a parameter that takes one, is declared in a way that cannot work.",
        "A resource is an async generator that yields once. Only steps and other resources can take one.",
        "Correct what the message names. Nothing was started.",
    ),
    "resource.unknown": (
        "A step or a resource takes a resource that is not registered.",
        "A parameter with the default weft.injected is found by its name or by its type, and neither fits.",
        "Register it with @app.resource, import the module that does, or correct the name or the annotation.",
    ),
    "resource.ambiguous": (
        "Several resources have the type of a parameter.",
        "Then its name decides, but no resource of this type has the name of the parameter.",
        "Name the parameter like the resource that is meant.",
    ),
    "resource.cycle": (
        "Resources need each other in a circle, so none of them can be opened first.",
        "The parameters of a resource are other resources, which are opened before it.",
        "Let one of them open without the other, or make one resource of both.",
    ),
    "resource.is_input": (
        "A parameter of a step is both an input and a resource.",
        "An input is recorded with the run; a resource never is. Weft does not guess which one is meant.",
        "Write = weft.injected for the resource, or rename the input. A resource has no weft.Fact, Each or Const.",
    ),
    "resource.failed": (
        "A resource could not be opened.",
        (
            "The host opens what its steps need when it starts, so it did not start. What was registered later is "
            "opened at first use; then the attempt of the step failed, and is retried like any other."
        ),
        "The message has the cause. Is what it connects to running, and are its settings right?",
    ),
}
