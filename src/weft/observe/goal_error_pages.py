"""The error pages of goals: step definitions, step documents and plans."""

from __future__ import annotations

GOAL_PAGES: dict[str, tuple[str, str, str]] = {
    "goal.missing": (
        "A goal cannot be reached from the given facts.",
        "A step needs a fact that is neither given nor provided by a step that can run.",
        "Give the missing fact, or register a step that provides it. The message names the fact and the step.",
    ),
    "goal.bad_step": (
        "The definition of a step is not valid.",
        "The message lists every mistake with its location. Either all steps of a document are registered, or none.",
        "Correct the definition; nothing was registered or changed. docs/goals.md has an example of every field.",
    ),
    "goal.bad_need": (
        "An input of a step contradicts itself.",
        (
            "A required need has no default and no deadline, an optional need has no match, and a const has only a "
            "value. `each` needs an array."
        ),
        "Use the fields of one role: required (none), optional (default, deadline), or const (value).",
    ),
    "goal.bad_type": (
        "A fact has an unknown type.",
        (
            "Types are string, number, integer, boolean, object, array, null and any, the same with [] at the end, "
            "and JSON Schema."
        ),
        "Use one of them, or omit the type.",
    ),
    "goal.bad_script": (
        "A predicate, match, mapping or script of a step does not compile.",
        (
            "Scripts are checked before anything is stored. They can read only the inner names of the step's needs; a "
            "match and a mapping can read only `value`."
        ),
        "Correct it at the location in the message.",
    ),
    "goal.bad_pipeline": (
        "A step of a pipeline is wrong.",
        "Pipelines are checked before anything is stored. docs/pipelines.md lists the arguments of every step.",
        "Correct it at the location in the message.",
    ),
    "goal.bad_schema": (
        "The form of a question is not a schema.",
        "A form is a mapping of names to types (string, integer[], …), or JSON Schema without external references.",
        "Correct the type that the message names.",
    ),
    "goal.bad_way": (
        "The definition does not say clearly how a step is performed.",
        (
            "A step has exactly one of step, http, script, pipeline, goal, workflow and ask. A URL can contain only "
            "needs that always have a value."
        ),
        "Use exactly one of these fields, and make every {name} in a URL a required need of the step.",
    ),
    "goal.bad_cache": (
        "A step that cannot be cached has a cache.",
        (
            "A step with an undo or an irreversible effect must be performed each time. Child runs and questions "
            "cannot be cached, either."
        ),
        "Remove the cache, or the undo.",
    ),
    "goal.type_conflict": (
        "Two steps disagree about the type of a fact.",
        "A fact has the same type in all steps, so that the output of one step is a valid input of every other.",
        "Rename one of the two facts, or declare it as any in one of the steps.",
    ),
    "goal.cycle": (
        "A step depends on its own output, through the steps in the message.",
        "Plans have no cycles: a step runs once, after the steps that it depends on.",
        "Remove a need, or rename one of the facts.",
    ),
    "goal.bad_plan": (
        "A goal run was started with a plan that cannot be read.",
        "Plans are made by the planner. A plan of another version of Weft may contain something unknown.",
        "Start the goal again, so that this version plans it.",
    ),
    "goal.no_goal": (
        "A plan was requested without a goal.",
        "A goal is the step whose result you want. Weft finds the other steps.",
        "Name at least one step: app.plan(send_invoice), weft plan send_invoice.",
    ),
    "goal.blocked": (
        "A goal runs only if a fact does not exist, but the fact is given.",
        "The goal collects `none` of this fact: it is a fallback for the case that there is no value.",
        "Do not give the fact, or choose another goal.",
    ),
    "goal.not_freezable": (
        "A plan cannot be written as a graph.",
        (
            "A goal run decides while it runs about gates, competing providers and optional facts that may still be "
            "provided. A graph is fixed in advance."
        ),
        "Run the goal itself, or give the fact at the start, so that nothing has to be decided.",
    ),
    "goal.no_file": (
        "The file of a step document cannot be read.",
        "The file does not exist, relative to the working directory, or is not readable.",
        "Give a path relative to the working directory or to the program, or an absolute one.",
    ),
    "goal.not_json": (
        "A step document contains a value that JSON does not have.",
        "Documents are data: text, numbers, true and false, lists and objects.",
        "Write the value as text, or omit it.",
    ),
    "goal.too_deep": (
        "A step document is nested too deeply.",
        "The limit protects the parser from documents that are made to exhaust it.",
        "Register the steps in several documents.",
    ),
    "goal.yaml": (
        "A step document is not YAML that Weft accepts.",
        "The message names the line. Only true and false are booleans. A predicate that begins with ! must be quoted.",
        'Quote it: when: "!done"',
    ),
    "goal.bad_id": (
        "The id of a step is not valid.",
        "Ids are part of plans, logs, file names and URLs.",
        "Use only letters, digits and _ . + -",
    ),
    "goal.bad_name": (
        "A fact has no name.",
        "Steps are connected by the names of facts, so a fact must have a name.",
        "Name the fact, or remove it.",
    ),
    "goal.same_name": (
        "Two inputs or two outputs of a step have the same inner name.",
        "The step gets and returns values by their inner names, so each name can be used only once.",
        "Give one of them another `name`.",
    ),
    "goal.two_roles": (
        "A step both needs and provides the same fact.",
        "A fact has one role per step, because its needs must exist before it starts.",
        "Give the output another name.",
    ),
    "goal.bad_give": (
        "An output of a step is declared as the whole result and as a part of it.",
        "A fact is either the whole result or a field of it.",
        "Declare only one of the two.",
    ),
    "goal.bad_width": (
        "The width of a step is less than 1, so it would never start.",
        "The width is the number of work items that are performed at once.",
        "Use 1 or more, or omit the width.",
    ),
    "goal.bad_retry": (
        "The retry of a step contradicts itself.",
        "A step has at least one attempt, and the longest delay must not be shorter than the first.",
        "Correct attempts, delay or max_delay.",
    ),
    "goal.bad_duration": (
        "A duration in a step document cannot be read.",
        'Durations are written as "500ms", "30s", "1h30m" or "2d". In the older format, a number is milliseconds.',
        "Correct the duration at the location in the message.",
    ),
    "goal.unknown_field": (
        "A step document has an unknown field.",
        "Unknown fields are refused, because a misspelt field would otherwise have no effect.",
        "See the suggestion in the message. weft.goals.document_schema() has all fields.",
    ),
    "goal.unknown_word": (
        "A field of a step document has an unknown value.",
        "The message lists the valid values.",
        "Use one of them.",
    ),
    "goal.unknown_format": (
        "The document is not declared as a step document.",
        "A step document has `weft: steps/1`. A document with `weft: graph/1` is a graph, for app.graph.",
        "Write weft: steps/1, or register the document with app.graph.",
    ),
    "goal.missing_field": (
        "A required field is missing in a step document.",
        "Without this field, the definition of the step is incomplete.",
        "Add the field that the message names.",
    ),
    "goal.wrong_type": (
        "A field of a step document has a value of the wrong type.",
        "The message names the expected type and the actual value. In YAML, quote text that looks like a number.",
        "Correct the value.",
    ),
    "goal.two_spellings": (
        "A step document has the same field in two spellings.",
        "Older spellings are accepted, but two spellings at once could contradict each other.",
        "Keep one of them.",
    ),
    "goal.two_steps": (
        "Two steps of a document have the same id.",
        "An id names one step, in the document and in the whole catalogue.",
        "Rename one of them.",
    ),
    "goal.duplicate_key": (
        "A mapping in a step document has the same key twice.",
        "Only the last value would count, and the first would be ignored silently.",
        "Keep one of them; the message names the line.",
    ),
    "goal.too_big": (
        "A step document is too large.",
        "The limit protects the parser from documents that are made to exhaust it.",
        "Register the steps in several documents.",
    ),
}
