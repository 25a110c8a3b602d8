import { expect, it } from "vitest";

import { pythonValue, startAsCommand, startAsCurl, startAsPython, startBody, type Start } from "./start-text";

const start: Start = { workflow: "order", tag: "", version: "", input: { order_id: "o'1", count: 2 }, id: "", attributes: {}, delay: 0 };
const whole: Start = { ...start, tag: "live", id: "o-1", attributes: { vip: true }, delay: 1.5 };

it("asks for what was chosen and nothing else", () => {
  expect(startBody(start)).toEqual({ workflow: "order", input: start.input });
  expect(startBody(whole)).toEqual({ workflow: "order:live", input: start.input, id: "o-1", attributes: { vip: true }, delay: 1.5 });
  expect(startBody({ ...start, version: "9b05" })).toMatchObject({ workflow: "order", version: "9b05" });
});

it("is Python", () => {
  expect(startAsPython(whole, "http://x")).toBe(
    'async with weft.Client("http://x") as client:\n    run = await client.start("order:live", {"order_id": "o\'1", "count": 2}, id="o-1", attributes={"vip": True}, delay=1.5)',
  );
  expect(pythonValue([null, true, false, 1.5, "a\n\"", { b: [] }])).toBe('[None, True, False, 1.5, "a\\n\\"", {"b": []}]');
});

it("is a command, quoted for a shell", () => {
  expect(startAsCommand({ ...start, id: "o 1", version: "9b05" })).toBe("weft start order@9b05 'order_id=o'\\''1' count=2 --id 'o 1'");
  expect(startAsCommand(whole)).toContain("# without attributes");
});

it("is curl, quoted for a shell", () => {
  expect(startAsCurl(start, "http://x")).toBe(
    `curl -H 'content-type: application/json' http://x/api/v1/runs \\\n  -d '{"workflow":"order","input":{"order_id":"o'\\''1","count":2}}'`,
  );
});
