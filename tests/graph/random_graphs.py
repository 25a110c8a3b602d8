"""Graphs drawn at random: well nested ones, ones with a deadlock planted in them, and wild ones.

A well nested graph is made of blocks that begin at one node and end at one: sequence, choice, parallel with an edge
join or a fan-in, for_each, spawn, loop, handler, early end. None of them can get stuck
(docs/internals/graph.md#6-guarantees). Conditions are `output.k0` … and `output.again`, lists are `output.items`:
whoever plays a graph draws them.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

Document = dict[str, Any]
Block = tuple[str, str]
"""The node it begins with, and the node it ends with ("": nothing goes on from it)."""

NODES_MAX = 30
CONDITIONS = ("output.k0", "output.k1", "output.k2", "output.k3")


class Drawing:
    """One well nested graph. ``early``: fan-ins may fire before all branches are there."""

    def __init__(self, seed: int, *, early: bool = True, failures: bool = True, planted: bool = False) -> None:
        self.draw = random.Random(seed)
        self.nodes: dict[str, dict[str, Any]] = {}
        self.early = early
        self.failures = failures
        self.room = self.draw.randint(3, NODES_MAX) - (7 if planted else 0)
        self.planted = planted
        self.around: list[str] = []
        """What the block being drawn lies in, outermost first: loop, split, frame."""

    def document(self) -> Document:
        """The drawing as a document."""
        if self.planted:
            # The deadlock stands inside, behind or, at the latest, in front of anything else that is drawn.
            first, _ = self.sequence(0)
            if self.planted:
                self.link(self.trap()[1], first)
        elif self.draw.random() < 0.15 and self.room > 6:
            self._entries()
        else:
            self.sequence(0)
        return {"nodes": self.nodes}

    # --- nodes ----------------------------------------------------------------------------------------------------

    def node(self, **fields: Any) -> str:
        name = f"n{len(self.nodes)}"
        self.room -= 1
        kind = self.draw.random()
        if kind < 0.1 and not fields:
            work: dict[str, Any] = {"wait": "1s"}
        elif kind < 0.2:
            work = {"pass": True}
        else:
            work = {"step": "s"}
        self.nodes[name] = {**work, **fields}
        return name

    def work(self, **fields: Any) -> str:
        """A node that gives an output to decide by."""
        name = self.node()
        self.nodes[name] = {"step": "s", **fields}
        return name

    def link(self, source: str, to: str) -> None:
        self.nodes[source].setdefault("next", []).append({"to": to})

    # --- blocks ---------------------------------------------------------------------------------------------------

    def sequence(self, depth: int) -> Block:
        """A few blocks one behind the other."""
        parts = [self.block(depth)]
        for _ in range(self.draw.randint(0, 3 if depth < 2 else 1)):
            if parts[-1][1] and self.room > 0:
                parts.append(self.block(depth))
                self.link(parts[-2][1], parts[-1][0])
        return parts[0][0], parts[-1][1]

    def block(self, depth: int) -> Block:
        if self.planted and self.draw.random() < 0.3:
            return self.trap()
        if self.room < 4 or depth > 3:
            name = self.node()
            return name, name
        kinds: list[Callable[[int], Block]] = [
            self.choice, self.choice, self.parallel, self.parallel, self.several, self.fan_out, self.fan_out,
            self.for_each, self.for_each, self.spawn, self.loop, self.loop, self.single,
        ]  # fmt: skip
        if self.failures:
            kinds += [self.guarded, self.guarded]
        return self.draw.choice(kinds)(depth + 1)

    def single(self, depth: int) -> Block:
        name = self.node()
        return name, name

    def within(self, kind: str, depth: int) -> Block:
        """A sequence inside something."""
        self.around.append(kind)
        drawn = self.sequence(depth)
        self.around.pop()
        return drawn

    def may_end(self) -> bool:
        """Whether a token may end here by itself.

        What does not lead to a loop's end lies outside the loop. Of several tokens in a loop, one that left it so
        would do that again in every round, as in ``half_left_loop``.
        """
        several = False
        for kind in reversed(self.around):
            if kind == "frame":
                return True
            if kind == "loop" and several:
                return False
            several = several or kind == "split"
        return True

    def arms(self, depth: int, kind: str, most: int = 3) -> list[Block]:
        count = self.draw.randint(2, most)
        return [self.within(kind, depth) for _ in range(count)]

    def meet(self, arms: list[Block], meeting: str) -> str:
        """Lead the arms to a node; now and then one ends by itself instead."""
        going = [last for _, last in arms if last]
        for last in going:
            self.link(last, meeting)
        return meeting

    def choice(self, depth: int) -> Block:
        split = self.work(on_no_match="end") if self.draw.random() < 0.3 else self.work()
        arms = self.arms(depth, "choice")
        closed = self.nodes[split].get("on_no_match") == "end"
        entries: list[dict[str, Any]] = [
            {"to": first, "when": when} for (first, _), when in zip(arms, CONDITIONS, strict=False)
        ]
        if not closed:
            del entries[-1]["when"]
        self.nodes[split]["next"] = entries
        ending = self.draw.random() < 0.2 and self.may_end()
        going = arms[1:] if ending else arms
        if not any(last for _, last in going):
            return split, ""
        return split, self.meet(going, self.node())

    def parallel(self, depth: int) -> Block:
        """All arms, and a node that waits for all its edges, taken or skipped."""
        split = self.node()
        arms = self.arms(depth, "split")
        self.nodes[split]["next"] = [{"to": [first for first, _ in arms]}]
        if sum(1 for _, last in arms if last) < 2:
            self._close(arms)
        return split, self.meet(arms, self.node(join="edges"))

    def several(self, depth: int) -> Block:
        """Each arm whose condition holds, perhaps none; a node waits for what was taken."""
        split = self.work(fan_out="all", on_no_match="end")
        arms = self.arms(depth, "split")
        self._close(arms)
        self.nodes[split]["next"] = [
            {"to": first, "when": when} for (first, _), when in zip(arms, CONDITIONS, strict=False)
        ]
        return split, self.meet(arms, self.node(join="edges"))

    def _close(self, arms: list[Block]) -> None:
        """Let every arm go on, so that the node behind them has several edges."""
        for index, (first, last) in enumerate(arms):
            if not last:
                tail = self.node()
                inner = self.node()
                self.nodes[inner]["next"] = [{"to": [first, tail]}]
                arms[index] = (inner, tail)

    def fan_out(self, depth: int) -> Block:
        split = self.node()
        arms = self.arms(depth, "frame", 4)
        self.nodes[split]["next"] = [{"to": [first for first, _ in arms]}]
        if not any(last for _, last in arms):
            self._close(arms)
        return split, self.meet(arms, self.fan_in(split, len(arms)))

    def for_each(self, depth: int) -> Block:
        split = self.work()
        first, last = self.within("frame", depth)
        entry: dict[str, Any] = {"to": first, "for_each": "${output.items}"}
        return self._multiplied(split, entry, (first, last), 2)

    def spawn(self, depth: int) -> Block:
        split = self.node()
        first, last = self.within("frame", depth)
        copies = self.draw.randint(1, 3)
        return self._multiplied(split, {"to": first, "copies": copies}, (first, last), copies)

    def _multiplied(self, split: str, entry: dict[str, Any], body: Block, most: int) -> Block:
        if self.draw.random() < 0.3:
            entry["width"] = self.draw.randint(1, 2)
        self.nodes[split]["next"] = [entry]
        if not body[1]:
            return split, ""
        closing = self.fan_in(split, most)
        self.link(body[1], closing)
        return split, closing

    def fan_in(self, opener: str, most: int) -> str:
        fields: dict[str, Any] = {"join": "all", "of": opener}
        if self.early and self.draw.random() < 0.5:
            fields["join"] = self.draw.choice(["any", {"at_least": self.draw.randint(1, most)}, {"at_least": "60%"}])
            fields["late"] = self.draw.choice(["cancel", "abandon", "merge"])
        if self.draw.random() < 0.5:
            how = self.draw.choice(["append", "merge_object", "keyed_by_branch"])
            fields["merge"] = {"how": how, "into": f"branch.m_{opener}"}
        name = self.node(**fields)
        if self.failures and self.draw.random() < 0.3 and self.may_end():
            self.nodes[name]["catch"] = [{"to": self.node()}]
        return name

    def loop(self, depth: int) -> Block:
        header = self.node()
        first, last = self.within("loop", depth)
        self.link(header, first)
        latch = self.work()
        if not last:
            self.nodes[header]["next"] = [{"to": [first, latch]}]
        else:
            self.link(last, latch)
        repeat: dict[str, Any] = {"while": "output.again", "at_most": self.draw.randint(1, 3), "back_to": header}
        self.nodes[latch]["repeat"] = repeat
        drawn = self.draw.random()
        if drawn < 0.3:
            return header, latch
        if drawn < 0.5:
            repeat["exhausted"] = []
            return header, latch
        beyond, after = self.node(), self.node()
        repeat["exhausted"] = beyond
        self.link(latch, after)
        self.link(beyond, after)
        return header, after

    def guarded(self, depth: int) -> Block:
        """A node whose failure somebody takes; both ways meet again, or the handler ends."""
        task = self.work()
        rescue = self.node()
        named = {"error": "boom"} if self.draw.random() < 0.3 else {}
        self.nodes[task]["catch"] = [{"to": rescue, **named}]
        after = self.node()
        self.link(task, after)
        if self.draw.random() < 0.6 or not self.may_end():
            self.link(rescue, after)
        return task, after

    def _entries(self) -> None:
        """Several nodes to start from, joined by their edges or by a fan-in."""
        arms = self.arms(1, "split")
        self._close(arms)
        self.meet(arms, self.node(join=self.draw.choice(["edges", "all"])))

    # --- deadlocks ------------------------------------------------------------------------------------------------

    def trap(self) -> Block:
        self.planted = False
        return self.draw.choice([self.crowd, self.half_left_loop, self.both_ways])()

    def crowd(self) -> Block:
        """Two tokens through a plain node into an edge join."""
        split, left, right, other = self.node(), self.node(), self.node(), self.node()
        middle, join = self.node(), self.node(join="edges")
        self.nodes[split]["next"] = [{"to": [left, right, other]}]
        for source, to in ((left, middle), (right, middle), (middle, join), (other, join)):
            self.link(source, to)
        return split, join

    def half_left_loop(self) -> Block:
        """A loop that one token leaves in each round while another goes on."""
        header, latch, left, join = self.node(), self.work(), self.node(), self.node(join="edges")
        self.nodes[header]["next"] = [{"to": [latch, left]}]
        self.nodes[latch]["repeat"] = {"while": "output.again", "at_most": 3, "back_to": header, "exhausted": []}
        self.link(latch, join)
        self.link(left, join)
        return header, join

    def both_ways(self) -> Block:
        """Two conditions that may both hold, a plain node behind them, and a join that counts on one."""
        split, chooser, other = self.node(), self.work(fan_out="all", on_no_match="end"), self.node()
        left, right, middle, join = self.node(), self.node(), self.node(), self.node(join="edges")
        self.nodes[split]["next"] = [{"to": [chooser, other]}]
        self.nodes[chooser]["next"] = [{"to": left, "when": CONDITIONS[0]}, {"to": right, "when": CONDITIONS[1]}]
        for source, to in ((left, middle), (right, middle), (middle, join), (other, join)):
            self.link(source, to)
        return split, join


def well_nested(seed: int, *, early: bool = True, failures: bool = True) -> Document:
    """A graph that cannot get stuck, of up to 30 nodes or a few more."""
    return Drawing(seed, early=early, failures=failures).document()


def planted(seed: int) -> Document:
    """A graph that can get stuck."""
    return Drawing(seed, planted=True).document()


def wild(seed: int) -> Document:
    """Nodes, edges, joins and loops as they come; many of these do not compile."""
    draw = random.Random(seed)
    count = draw.randint(3, 12)
    nodes: dict[str, dict[str, Any]] = {}
    for index in range(count):
        node: dict[str, Any] = {"step": "s", "on_no_match": "end"}
        later = [f"n{other}" for other in range(index + 1, min(count, index + 5))]
        chosen = draw.sample(later, min(len(later), draw.choice([0, 1, 1, 1, 2, 2, 3])))
        if chosen and draw.random() < 0.5:
            node["next"] = [{"to": chosen}]
        elif chosen:
            node["next"] = [{"to": to, "when": when} for to, when in zip(chosen, CONDITIONS, strict=False)]
            node["fan_out"] = draw.choice(["all", "first_match"])
        if chosen and draw.random() < 0.15:
            node["next"] = [{"to": chosen[0], "for_each": "${output.items}"}]
            node.pop("fan_out", None)
        if draw.random() < 0.2:
            back = f"n{draw.randint(max(0, index - 4), index)}"
            node["repeat"] = {"while": "output.again", "at_most": 2, "back_to": back, "exhausted": []}
        if later and draw.random() < 0.15:
            node["catch"] = [{"to": draw.choice(later)}]
        if draw.random() < 0.35:
            node["join"] = draw.choice(["edges", "edges", "all", "any", {"at_least": 2}])
        nodes[f"n{index}"] = node
    return {"nodes": nodes}


def timed(document: Document, seed: int) -> Document:
    """The same graph; about half of its joins have a deadline, and some loops no condition."""
    draw = random.Random(f"deadlines {seed}")
    for node in document["nodes"].values():
        if "join" in node and draw.random() < 0.5:
            wait = node["join"]
            fields = dict(wait) if isinstance(wait, dict) else {"wait": wait}
            node["join"] = {**fields, "timeout": "1h", "on_timeout": draw.choice(["fail", "proceed", "proceed"])}
        if "repeat" in node and draw.random() < 0.2:
            del node["repeat"]["while"]
    return document
