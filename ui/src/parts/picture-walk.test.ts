import { expect, test } from "vitest";

import type { DrawnPicture } from "../api/schema";
import { arrowPath, groupLetters, listed, nameOf, tallyOf, tallyText } from "./picture-look";
import { firstView, fitted, held, isInSight, walk } from "./picture-walk";

function box(id: string, x: number, y: number): DrawnPicture["boxes"][number] {
  return { id, title: id, x, y, w: 100, h: 50 };
}

function arrow(source: string, to: string, kind: "main" | "back" = "main"): DrawnPicture["arrows"][number] {
  return { id: `${source}>${to}`, source, to, kind, points: [[0, 0], [0, 10]] };
}

const picture: DrawnPicture = {
  digest: "d", title: "t", width: 400, height: 300,
  boxes: [{ id: "", shape: "start", x: 190, y: 0, w: 17, h: 16 }, box("a", 150, 40), box("b", 0, 140), box("c", 150, 140), box("d", 300, 140), box("e", 150, 240)],
  arrows: [arrow("", "a"), arrow("a", "b"), arrow("a", "c"), arrow("a", "d"), arrow("c", "e"), arrow("e", "a", "back")],
  groups: [],
};

test("down and up follow arrows, and take the one that leads straight on", () => {
  expect(walk(picture, null, "down")).toBe("a");
  expect(walk(picture, "a", "down")).toBe("c");
  expect(walk(picture, "c", "down")).toBe("e");
  expect(walk(picture, "e", "up")).toBe("c");
});

test("up from the first box stays there, and a back arrow is not followed", () => {
  expect(walk(picture, "a", "up")).toBe("a");
  expect(walk(picture, "e", "down")).toBe("e");
});

test("left and right go to siblings in the row", () => {
  expect(walk(picture, "c", "left")).toBe("b");
  expect(walk(picture, "c", "right")).toBe("d");
  expect(walk(picture, "d", "right")).toBe("d");
});

test("a small picture fits whole and is not enlarged", () => {
  expect(fitted(picture, { width: 1000, height: 1000 }).zoom).toBe(1);
});

test("a tall picture opens readable, around the box that is selected", () => {
  const tall = { ...picture, height: 30_000 };
  const size = { width: 800, height: 400 };
  expect(firstView(tall, size, undefined).zoom).toBeGreaterThanOrEqual(0.45);
  const view = firstView(tall, size, box("e", 150, 20_000));
  expect(isInSight(box("e", 150, 20_000), view, size)).toBe(true);
});

test("a picture whose titles can be read opens as a whole, whatever goes on in it", () => {
  const size = { width: 800, height: 320 };
  const high = { ...picture, height: 720 };
  expect(firstView(high, size, box("e", 150, 640))).toEqual(fitted(high, size));
});

test("a picture that does not fit opens where it begins, not at an empty middle", () => {
  const first = box("a", 9_000, 40);
  const wide = { ...picture, width: 10_000, height: 30_000, boxes: [first, box("b", 0, 20_000)] };
  const size = { width: 800, height: 400 };
  expect(isInSight(first, firstView(wide, size, undefined), size)).toBe(true);
});

test("a box keeps its place on the screen when the picture grows", () => {
  const view = { x: 10, y: 20, zoom: 0.5 };
  const [before, after] = [box("c", 150, 140), box("c", 350, 440)];
  const next = held(view, before, after);
  expect(after.x * next.zoom + next.x).toBe(before.x * view.zoom + view.x);
  expect(after.y * next.zoom + next.y).toBe(before.y * view.zoom + view.y);
});

test("counts are shown with their signs", () => {
  expect(tallyText(tallyOf({ mark: "working", done: 38, open: 1, failed: 1 }))).toBe("38 ✓ 1 ● 1 ✗");
});

test("a box says its title, its state and where it leads", () => {
  const standing = { seq: 1, at: null, status: "running", boxes: { a: { mark: "done" as const, done: 2 } }, arrows: {} };
  expect(nameOf(box("a", 0, 0), standing, ["ship", "email"])).toBe("a, done, 2 done, leads to ship and email");
  expect(listed(["a", "b", "c"])).toBe("a, b and c");
});

test("groups without an area get letters", () => {
  const grouped = { ...picture, groups: [{ id: "g", title: "g", kind: "loop" as const }, { id: "h", title: "h", kind: "loop" as const, w: 10, h: 10 }] };
  expect([...groupLetters(grouped)]).toEqual([["g", "A"]]);
});

test("an arrow ends before its head and turns with round corners", () => {
  expect(arrowPath([[0, 0], [0, 20], [40, 20], [40, 60]])).toBe("M0 0L0 13Q0 20 7 20L33 20Q40 20 40 27L40 53");
});
