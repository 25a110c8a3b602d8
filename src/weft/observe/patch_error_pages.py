"""The pages of the errors of patches: what happened, why, what to do."""

from __future__ import annotations

_WAIT = "Wait until the run has left it, or fork the run before the fan-out."

PATCH_PAGES: dict[str, tuple[str, str, str]] = {
    "patch.refused": (
        "The patch does not fit the run as it stands.",
        "The plan lists every reason, each with a code of its own, such as patch.node_removed.",
        "Read the plan with weft patch RUN FILE --dry-run. Nothing was changed.",
    ),
    "patch.invalid": (
        "The patch itself is not valid.",
        "A field is unknown or missing, an operation cannot be applied, or the new document has errors.",
        "Correct everything that the message lists. Nothing was changed.",
    ),
    "patch.stale_base": (
        "The patch was written against a version that the run no longer follows.",
        "The run was patched, or the tag was moved, in the meantime.",
        "Look at the changes with weft show RUN --versions, and write the patch against the present version.",
    ),
    "patch.moved_on": (
        "The plan of the patch is not the expected one.",
        "--expect applies only the plan with that digest. The run has moved on, or another plan has that digest.",
        "Read the new plan, and repeat the command with its digest.",
    ),
    "patch.not_in_time": (
        "A patch that waited was dropped, because its time was over.",
        "It was tried again after every event of the run, and was never allowed.",
        "weft patch RUN FILE --dry-run says why. Wait longer, change the patch, or fork the run.",
    ),
    "patch.run_ended": (
        "A patch that waited or was being reviewed was dropped, because its run ended or was cancelled.",
        "The run did not come to a place where the patch was allowed, or nobody answered before.",
        "A failed run can be patched again; to change the past of one that is over, fork it.",
    ),
    "patch.rejected": (
        "A patch was dropped, because somebody who was asked about it did not agree.",
        "The reason is in the log: weft events RUN --changes.",
        "Change the patch, and ask again.",
    ),
    "patch.withdrawn": (
        "A patch that waited or was being reviewed was taken back.",
        "Somebody dropped it: weft events RUN --changes says who, and why.",
        "Patch the run again if it is still needed.",
    ),
    "patch.not_begun": (
        "The run has not begun, so it cannot be patched.",
        "No host has taken it yet: it is pending, or it begins later.",
        "Patch it when it has begun. Or cancel it, and start it again as it should be.",
    ),
    "patch.no_author": (
        "A patch that people must agree to does not say who asks for it.",
        "Who asks for a patch may not agree to it, so that name must be known.",
        "Name yourself: by= in Python, by in the body of a request. The command line does it by itself.",
    ),
    "patch.needs_review": (
        "A run in a bulk refuses the patch, because people must agree to it who were not asked.",
        "Its workflow says so: changes: {review: […]}.",
        "Let the same people review the bulk: --review.",
    ),
    "patch.not_for_agents": (
        "An agent may not change this.",
        "An agent adds nodes and edges to a graph, and changes those that it added, unless they have begun to work.",
        "The agent is told, and may try another patch. People can make this change: weft patch RUN FILE.",
    ),
    "patch.nothing_to_undo": (
        "There is no patch that can be undone, or no undo that can be taken back.",
        "Undo goes back one patch at a time; a new patch ends what could be redone.",
        "weft show RUN --versions lists the patches of a run.",
    ),
    "patch.diverges": (
        "A code run cannot come to this version: the version asks for something other than the log has.",
        "The log was replayed against it in isolation. The plan names the place, what is recorded, and what is asked.",
        "Mend the version (the old name, ctx.removed or ctx.version), or fork the run before that place with --to.",
    ),
    "patch.raises": (
        "A code run cannot come to this version: its code fails before it gets to where the run is.",
        "The log was replayed against the version in isolation. The plan has the error and the line.",
        "Mend the version, or fork the run with --to.",
    ),
    "patch.value": (
        "A code run cannot come to this version: a recorded value does not have the type that the version expects.",
        "The input of the run or a recorded result does not fit the types of the new code.",
        "Let the version take the old type too, or fork the run before that place with --to.",
    ),
    "patch.not_hosted": (
        "A code run cannot come to this version, because no host has it, or its code is not in this process.",
        "Code is deployed, not patched: a run follows only what a living host has, and is replayed against it first.",
        "Deploy the version and try again. On the command line, name the app that has it: --app app.py.",
    ),
    "patch.unknown_field": (
        "The patch sets a field that the state of the graph does not have.",
        "The new version declares the fields of its state, and no node of it writes this one.",
        "Correct the name, or declare the field below state in the same patch.",
    ),
    "patch.wrong_argument": (
        "The new version calls a step with an argument that the step does not take, or without one that it needs.",
        "The steps of the living hosts were asked; none of them takes what the node gives.",
        "Correct the names below with, or deploy a host whose step takes them first.",
    ),
    "patch.says_nothing": (
        "The patch of a goal run changes nothing.",
        "It has none of given, goals, steps, catalogue and replan.",
        "Say what is to change. To plan again with the same steps, use replan: true.",
    ),
    "patch.fact_known": (
        "A patch gives a fact that has a value which must stay.",
        "A step has given it, or a step, a gate or a deadline has read it. What was read never changes.",
        "Leave the fact out, or fork the run with another value.",
    ),
    "patch.unknown_goal": (
        "A patch adds a goal that the run does not know, or removes one that it does not have.",
        "A run knows the steps of its plans and of its patches, not the whole catalogue.",
        "Correct the name, add the definition of the step to steps, or use catalogue: now.",
    ),
    "patch.no_goals": (
        "A patch removes the last goal of a run.",
        "A run needs something to achieve.",
        "Keep a goal or add another. To end the run, use weft cancel.",
    ),
    "patch.goal_over": (
        "A patch adds a goal that was dropped while it was active.",
        "A dropped step is over: as a goal it would count as skipped and never be done.",
        "Add the step under another id, or fork the run before it was dropped.",
    ),
    "patch.step_begun": (
        "A patch replaces a step that has begun.",
        "Its inputs are bound. Only a failed run can begin such a step anew, unless it has completed.",
        "Give the new definition another id, or fork the run before the step.",
    ),
    "patch.missing": (
        "With this patch, nothing could give a fact that a goal needs.",
        "No step of the new plan gives it. The plan names the steps that would have, but are over or blocked.",
        "Give the fact, add a step that gives it, or use catalogue: now.",
    ),
    "patch.blocked": (
        "A goal requires that a fact is absent, and the fact is given.",
        "The patch gives the fact, or adds the goal.",
        "Remove the goal, or leave the fact out.",
    ),
    "patch.cycle": (
        "With this patch, a step would need itself.",
        "The message has the path from the step back to itself.",
        "Remove a need, or rename one of the facts.",
    ),
    "patch.type_clash": (
        "Two steps of the new plan declare a fact with different types.",
        "A fact has one type everywhere.",
        "Rename one of the facts, or use any.",
    ),
    "patch.wrong_type": (
        "A value that the patch gives does not have the type of its fact or field.",
        "The steps of the new plan declare the types of facts, and a graph those of the fields of its state.",
        "Correct the value.",
    ),
    "patch.node_removed": (
        "The new document lacks a node at which a token of the run is.",
        "Everything that is live must have a place in the new document.",
        "Keep the node, rename it with rename, or move or drop the token.",
    ),
    "patch.scope_changed": (
        "A node is in other branches or loops in the new document than a token that is there.",
        "A patch never takes a token into or out of a branch or a loop.",
        "Restart or move the token, or wait until it has left the node.",
    ),
    "patch.join_in_use": (
        "A token waits at a join that the new document no longer has.",
        "A waiting token needs an edge join in the same scope.",
        _WAIT,
    ),
    "patch.waiting_token": (
        "A token waits at a join over an edge that the new document no longer has.",
        "No new edge of the join takes its place, or several could.",
        "Keep the edge, or move or drop the token.",
    ),
    "patch.frame_open": (
        "A fan-out is open, and the new document opens or closes it in another way.",
        "An open fan-out keeps its branches, its opener and its join.",
        _WAIT,
    ),
    "patch.loop_open": (
        "A loop is running that the new document does not have in this place.",
        "A loop stays the same if its first node does and it has a last node in common.",
        "Restart or move its tokens, or wait until they have left the loop.",
    ),
    "patch.revives": (
        "A node that has run could run again because of the patch.",
        "A new edge leads to it from work that is still to come.",
        "Name the node in again, if it may really run twice.",
    ),
    "patch.would_end": (
        "The patch would end or fail the run at once.",
        "Its last token would be dropped, or too few branches are left for a join.",
        "The plan names the join and what it lacks. To end the run, use weft cancel.",
    ),
    "patch.unsound_here": (
        "From where the run stands, the new document could get stuck.",
        "Both documents may be sound from their start; the present position is not one of the new document's own.",
        "The plan has the shortest path to a position that is stuck. Change the document, or move a token.",
    ),
    "patch.unchecked": (
        "The search for positions in which the run gets stuck was cut short.",
        "There are too many positions to examine.",
        "Write unchecked: true into the patch, which is recorded. Instead of an undo, patch to the version before.",
    ),
    "patch.say_via": (
        "A token is to be moved to a join, and the patch does not say over which edge it comes.",
        "A join waits for its edges, so it must be known which one this is.",
        "Add via: NODE to the move.",
    ),
    "patch.edge_taken": (
        "A token is to be moved to a join over an edge on which something waits already.",
        "Each edge of a join delivers once.",
        "Name another edge with via, or drop the token that waits.",
    ),
    "patch.move_arrived": (
        "A token that has arrived at the join of its fan-out cannot be moved, dropped or restarted.",
        "What has arrived has arrived.",
        "Leave it out of the patch.",
    ),
    "patch.unknown_token": (
        "An instruction of the patch names no token, several tokens, or a node that does not exist.",
        "A token is named by its node, by node and branch, or by its id.",
        "weft show RUN lists the tokens. Name one of them exactly.",
    ),
    "patch.limit_passed": (
        "The new limit in time of a graph run has passed already.",
        "It counts from the start of the run, so the run would end at once.",
        "Set a later limit. To end the run, use weft cancel.",
    ),
    "limit.patches": (
        "The run or the patch has reached a limit.",
        "A run takes 100 patches, a patch 500 operations and a document of 1 MiB.",
        "Split the patch, or fork the run.",
    ),
}
