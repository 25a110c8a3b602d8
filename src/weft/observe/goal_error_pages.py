"""Pages of the codes that a step, a document of steps or a plan is refused with: what happened, why, what to do."""

from __future__ import annotations

GOAL_PAGES: dict[str, tuple[str, str, str]] = {
    "goal.missing": (
        "A goal cannot be reached from what is given.",
        "Some fact that a step needs is neither given nor made by any step that can run.",
        "Give the missing fact, or register a step that gives it; the message names both.",
    ),
    "goal.bad_step": (
        "A step cannot come into the catalogue as it is written.",
        "The message names every mistake with its place. All steps of a document come in together or not at all.",
        "Correct the definition; nothing was registered or changed. docs/goals.md has an example of every field.",
    ),
    "goal.bad_need": (
        "An input of a step contradicts itself.",
        (
            "A required need has no default and no deadline, an optional one no match, a const only a value; `each` "
            "takes arrays apart."
        ),
        "Say one thing: required (nothing), optional (default, deadline), or const (value).",
    ),
    "goal.bad_type": (
        "The type of a fact is none.",
        (
            "Types are string, number, integer, boolean, object, array, null and any, each also with [] behind, or "
            "JSON Schema."
        ),
        "Use one of them, or leave the type out.",
    ),
    "goal.bad_script": (
        "A predicate, match, mapping or script of a step does not compile.",
        (
            "It is checked before anything is stored. Only the inner names of the step's needs exist in it; a match "
            "and a mapping see one value, called value."
        ),
        "Correct it where the message says.",
    ),
    "goal.bad_schema": (
        "The form of a question is not a schema.",
        "A form is a mapping of names to types (string, integer[], …) or JSON Schema that refers only to itself.",
        "Correct the type that the message names.",
    ),
    "goal.bad_way": (
        "It is not clear how a step is performed.",
        (
            "A step has exactly one of step, http, script, goal, workflow and ask, and an address is filled with needs "
            "that are surely there."
        ),
        "Name one way, and make every {name} of an address a required need of the step.",
    ),
    "goal.bad_cache": (
        "A step cannot be answered from the cache.",
        (
            "What was not done cannot be undone, what is irreversible is done each time, and a run or a question is "
            "none of a step's results."
        ),
        "Leave the cache out, or the undo.",
    ),
    "goal.type_conflict": (
        "Two steps disagree about the type of a fact.",
        "A fact has one type wherever it is needed or given, so that any step that gives it fits any that needs it.",
        "Rename one of the two facts, or declare it as any in one of the steps.",
    ),
    "goal.cycle": (
        "A step would need what only itself can give, over the steps in the message.",
        "Plans have no circles: a step runs once, after all that it needs.",
        "Take a need away, or give one of the facts another name.",
    ),
    "goal.bad_plan": (
        "A goal run was started with a plan that cannot be read.",
        "Plans are made by the planner; one from another version of Weft may say what this one does not know.",
        "Start the goal again, so that it is planned here.",
    ),
    "goal.no_goal": (
        "A plan was asked for without a goal.",
        "A goal is the step whose outcome you want; everything else follows from it.",
        "Name at least one step: app.plan(send_invoice), weft plan send_invoice.",
    ),
    "goal.blocked": (
        "A goal runs only if nobody gives a fact, and the fact is given.",
        "It collects `none` of it: it is the fallback for when there is nothing.",
        "Leave the fact out, or choose another goal.",
    ),
    "goal.not_freezable": (
        "A plan says something that a graph cannot.",
        (
            "Gates, competition between providers, and optional facts that somebody may still give are decided by a "
            "goal run while it runs. A graph is wired for good."
        ),
        "Run the goal itself; or give the fact at the start, so that nothing is left to decide.",
    ),
    "goal.no_file": (
        "The file of a document of steps cannot be read.",
        "There is no such file from where the program runs, or it may not be read.",
        "Give a path relative to the working directory or to the program, or an absolute one.",
    ),
    "goal.not_json": (
        "A document of steps holds something that JSON cannot.",
        "Documents are data: text, numbers, true and false, lists and objects.",
        "Write the value as text, or leave it out.",
    ),
    "goal.too_deep": (
        "A document of steps is nested deeper than any needs to be.",
        "The limit protects the reader from documents made to exhaust it.",
        "Register the steps in several documents.",
    ),
    "goal.yaml": (
        "A document of steps is not YAML that Weft accepts.",
        "The message names the line. Only true and false are booleans; a predicate that begins with ! is quoted.",
        'Quote it: when: "!done"',
    ),
    "goal.bad_id": (
        "The id of a step is no name.",
        "Ids stand in plans, logs, file names and addresses.",
        "Use letters, digits and _ . + - only.",
    ),
    "goal.bad_name": (
        "A fact has no name.",
        "Steps find each other by the names of facts, so an empty one would mean nothing.",
        "Name the fact, or take it out.",
    ),
    "goal.same_name": (
        "Two inputs or two outputs of a step have the same inner name.",
        "Under its inner name the work is handed a value; two values cannot have one.",
        "Give one of them another `name`.",
    ),
    "goal.two_roles": (
        "A step needs a fact and gives it too.",
        "A fact has one role per step: what it needs is there before it starts.",
        "Give what it makes another name.",
    ),
    "goal.bad_give": (
        "An output of a step is the whole result and a part of it.",
        "The result itself is the fact, or a field of it is; not both.",
        "Say one of the two.",
    ),
    "goal.bad_width": (
        "A step would never start: its width is below 1.",
        "The width says how many of its work items are under way at once.",
        "Say 1 or more, or leave it out.",
    ),
    "goal.bad_retry": (
        "The retry of a step contradicts itself.",
        "At least one attempt is made, and the longest delay is not shorter than the first.",
        "Correct attempts, delay or max_delay.",
    ),
    "goal.bad_duration": (
        "A time in a document of steps cannot be read.",
        'Times are written like "500ms", "30s", "1h30m" or "2d"; in the older form a number is milliseconds.',
        "Write it like that; the message names the place.",
    ),
    "goal.unknown_field": (
        "A document of steps has a field that means nothing there.",
        "What is not understood is refused, because a mistyped field would otherwise be without effect.",
        "Look at the suggestion in the message. Where a field belongs: weft.goals.document_schema().",
    ),
    "goal.unknown_word": (
        "A field of a document of steps has a word that it does not know.",
        "The message lists the words that it may be.",
        "Use one of them.",
    ),
    "goal.unknown_format": (
        "The document does not say that it holds steps.",
        "A document of steps says `weft: steps/1`; one with `weft: graph/1` is a graph, for app.graph.",
        "Write weft: steps/1, or register it as what it is.",
    ),
    "goal.missing_field": (
        "A document of steps lacks a field.",
        "Without it the step would mean nothing definite.",
        "Add the field that the message names.",
    ),
    "goal.wrong_type": (
        "A field of a document of steps holds another kind of value than it takes.",
        "The message says what it must be and what it is. YAML reads yes, 1.0 and 2024-01-01 as written: quote text.",
        "Write the value as the message says.",
    ),
    "goal.two_spellings": (
        "A document of steps says one thing twice, in two spellings.",
        "Older spellings are understood; both at once could contradict each other.",
        "Keep one of them.",
    ),
    "goal.two_steps": (
        "Two steps of a document have the same id.",
        "An id names one step, in the document and in the whole catalogue.",
        "Rename one of them.",
    ),
    "goal.duplicate_key": (
        "A key stands twice in one mapping of a document of steps.",
        "Only the last would count, and the first would be lost without a word.",
        "Keep one of them; the message names the line.",
    ),
    "goal.too_big": (
        "A document of steps is larger than any needs to be.",
        "The limit protects the reader from documents made to exhaust it.",
        "Register the steps in several documents.",
    ),
}
