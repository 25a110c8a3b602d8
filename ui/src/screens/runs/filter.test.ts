import { describe, expect, it } from "vitest";

import { queryText } from "../../shell/address";
import { askedOf, isEmpty, momentMs, NO_FILTER, readAddress, spanMs, type RunFilter } from "./filter";
import { filterText, parseFilter, sentenceOf } from "./filter-text";

const filter = (some: Partial<RunFilter>): RunFilter => ({ ...NO_FILTER, ...some });

describe("typed text", () => {
  it.each<[string, Partial<RunFilter>]>([
    ["", {}],
    ["status:failed workflow:order customer=7 o-1", { status: ["failed"], workflow: "order", where: ["customer=7"], q: "o-1" }],
    ["status:failed,held status:paused", { status: ["failed", "held", "paused"] }],
    ['customer="Ann Smith"', { where: ['customer="Ann Smith"'] }],
    ['workflow:"my flow" version:9b05 style:graph', { workflow: "my flow", version: "9b05", style: "graph" }],
    ["since:24h until:2026-01-31 unchanged:1h waits:person parent:p-1", { since: "24h", until: "2026-01-31", unchanged: "1h", waits: "person", parent: "p-1" }],
    ['"status:failed"', { q: "status:failed" }],
    ["order:7", { q: "order:7" }],
    ['"a \\"b\\" c\\\\d"', { q: 'a "b" c\\d' }],
    ['where:"a b=c d"', { where: ["a b=c d"] }],
    ["id:status:x", { q: "status:x" }],
    ["  o-1   ", { q: "o-1" }],
    ["=x", { q: "=x" }],
  ])("%s", (text, expected) => expect(parseFilter(text)).toEqual({ filter: filter(expected), findings: [] }));

  it.each([
    ["status:fnord", "no such status"], ["since:soon", "not a time"], ["unchanged:long", "not a duration"], ["style:prose", "no such style"],
    ["waits:godot", "runs wait for"], ["workflow:", "missing"], ["where:x", "name=value"], ["o-1 o-2", "only one"],
  ])("%s is named and ignored", (text, why) => expect(parseFilter(text).findings[0]?.why).toContain(why));

  it("that nobody closed is still read", () => expect(parseFilter('workflow:"a b').filter.workflow).toBe("a b"));
});

const HELL = ["o-1", "status:failed", "a b", 'q"q', "back\\slash", "name=value", "=x", "<b>&amp;</b>", "‮right to left", "🪡 needle", "id:7", " lead", "a\nb", '"'];

describe("the same both ways", () => {
  it.each(HELL)("an id that begins with %j", (q) => expect(parseFilter(filterText(filter({ q }))).filter).toEqual(filter({ q })));

  it.each(HELL)("an attribute with the value %j", (value) => {
    const wanted = filter({ where: [`name=${value}`, `other=${JSON.stringify(value)}`] });
    expect(parseFilter(filterText(wanted)).filter).toEqual(wanted);
  });

  it.each(HELL)("a workflow with the name %j", (workflow) => {
    const wanted = filter({ workflow, parent: workflow, version: workflow, status: ["failed", "running"] });
    expect(parseFilter(filterText(wanted)).filter).toEqual(wanted);
  });
});

describe("the address", () => {
  it("holds the whole filter", () => {
    const wanted = filter({ status: ["failed", "held"], workflow: "a&b=c", where: ["a=1", "b= 2"], q: "x/y", since: "24h" });
    const query = new URLSearchParams(queryText({ workflow: wanted.workflow, q: wanted.q, since: wanted.since }));
    for (const one of wanted.status) query.append("status", one);
    for (const one of wanted.where) query.append("where", one);
    expect(readAddress(query)).toEqual({ filter: wanted, findings: [] });
  });

  it("ignores what it does not know and names what is wrong", () => {
    const { filter: found, findings } = readAddress(new URLSearchParams("theme=x&since=soon&status=failed,nope&where=x"));
    expect(found).toEqual(filter({ status: ["failed"] }));
    expect(findings.map(({ what }) => what)).toEqual(["status:nope", "where:x", "since:soon"]);
  });
});

describe("times", () => {
  it.each([["24h", 86_400_000], ["7d", 604_800_000], ["30min", 1_800_000], ["1m", 60_000], ["5 s", 5000], ["h", null], ["-1h", null], ["1y", null]])(
    "%s is %s ms", (text, ms) => expect(spanMs(text)).toBe(ms),
  );

  it("are asked for from the server's now on", () => {
    const now = Date.parse("2026-01-02T00:00:00Z");
    expect(askedOf(filter({ since: "24h", until: "2026-01-01T12:00:00Z", unchanged: "1h" }), now)).toEqual({
      since: "2026-01-01T00:00:00.000Z", until: "2026-01-01T12:00:00.000Z", unchanged: "3600s",
    });
    expect(momentMs("tomorrow", now)).toBeNull();
  });
});

it("an empty filter asks for everything", () => {
  expect(isEmpty(NO_FILTER)).toBe(true);
  expect(askedOf(NO_FILTER, 0)).toEqual({});
});

it.each<[Partial<RunFilter>, string]>([
  [{}, "run"],
  [{ status: ["failed"], workflow: "order", since: "24h" }, "failed run of order in the last 24h"],
  [{ status: ["failed", "held", "rolling_back"], q: "o" }, "failed, held or rolling back run that begins with “o”"],
  [{ waits: "person", unchanged: "1h", since: "2026-01-01" }, "run that waits for a person unchanged for 1h since 2026-01-01"],
])("%j is said", (some, said) => expect(sentenceOf(filter(some))).toBe(said));
