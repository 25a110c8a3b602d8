"""The pages of the errors of models: what happened, why, what to do."""

from __future__ import annotations

MODEL_PAGES: dict[str, tuple[str, str, str]] = {
    "model.unknown": (
        "No model has this name.",
        "An agent or a call names a model that neither the program nor the project declares.",
        'Correct the name, or declare the model: app.model("fast", url="https://…").',
    ),
    "model.unknown_api": (
        "A model has an api that is not known here.",
        "Weft speaks chat and responses. Other wires come from packages under the entry point weft.models.",
        "Correct api=, or install the package on every host that asks the model.",
    ),
    "model.unavailable": (
        "A model gave no usable answer.",
        "It cannot be reached, is overloaded, broke off or sent no answer, or its quota is used up.",
        "See whether it answers: weft models ping. Then retry the run, or give the model a fallback.",
    ),
    "model.rejected": (
        "A model refused the request.",
        "The provider does not accept the key, the name of the model, an option or a tool.",
        "The message has the words of the provider. Correct what it names, then retry the run.",
    ),
    "model.context": (
        "A conversation is too long for the model.",
        "The request has more tokens than the model's context.",
        "Agents shorten their conversation by themselves. Declare context= of the model, so that they do it in time.",
    ),
}
