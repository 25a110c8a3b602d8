/** How boxes and arrows look: the shapes, signs and lines of `weft show --svg`. Pure. */
import type { BoxStanding, DrawnArrow, DrawnBox, DrawnPicture, StandingView } from "../api/schema";
import { MARK_SIGNS, type Mark } from "../shell/words";

export type Point = readonly [number, number];

const CORNER = 7;
const HEAD = 7;
const TIP = 12;

/** The path of the sign in the disc of a box, around its centre. */
export const SIGN_PATHS: Partial<Record<Mark, string>> = {
  done: "M-3.2 .2 L-1 2.6 L3.4 -2.6",
  working: "M-1.6 -3 L2.6 0 L-1.6 3 Z",
  waiting: "M0 -3.4 L0 .3 L2.6 1.8",
  queued: "M-3 -2.2 H3 M-3 .2 H3 M-3 2.6 H1",
  failed: "M-2.6 -2.6 L2.6 2.6 M2.6 -2.6 L-2.6 2.6",
  skipped: "M-3 0 H3",
};

/** Return the path through the points of an arrow, with round corners, up to its head. */
export function arrowPath(points: readonly Point[]): string {
  const last = points.at(-1)!;
  const ends: Point[] = [...points.slice(0, -1), [last[0], last[1] - HEAD]];
  const parts = [`M${ends[0]![0]} ${ends[0]![1]}`];
  for (let at = 1; at < ends.length - 1; at++) {
    const [before, corner, after] = [ends[at - 1]!, ends[at]!, ends[at + 1]!];
    const reach = Math.min(CORNER, length(before, corner) / 2, length(corner, after) / 2);
    const [begin, end] = [towards(corner, before, reach), towards(corner, after, reach)];
    parts.push(`L${begin[0]} ${begin[1]}Q${corner[0]} ${corner[1]} ${end[0]} ${end[1]}`);
  }
  const end = ends.at(-1)!;
  return parts.join("") + `L${end[0]} ${end[1]}`;
}

/** Return the corners of the head of an arrow. */
export function arrowHead(points: readonly Point[]): string {
  const [x, y] = points.at(-1)!;
  return `${x},${y - 1} ${x - 5},${y - 3 - HEAD} ${x + 5},${y - 3 - HEAD}`;
}

function length(one: Point, other: Point): number {
  return Math.abs(one[0] - other[0]) + Math.abs(one[1] - other[1]);
}

function towards(point: Point, other: Point, reach: number): Point {
  const whole = length(point, other);
  if (whole === 0) return point;
  return [point[0] + ((other[0] - point[0]) * reach) / whole, point[1] + ((other[1] - point[1]) * reach) / whole];
}

/** Return the corners of a box at which a choice is made. */
export function choiceCorners(w: number, h: number): string {
  return `${TIP},0 ${w - TIP},0 ${w},${h / 2} ${w - TIP},${h} ${TIP},${h} 0,${h / 2}`;
}

/** A start without a title is a dot. */
export function isDot(box: DrawnBox): boolean {
  return box.shape === "start" && !box.title;
}

/** Whether the box starts other runs, into which one can go. */
export function leadsToRun(kind: string | undefined): boolean {
  return kind === "child" || kind === "workflow" || kind === "spawn" || kind === "goal";
}

export type Tally = { mark: Mark; count: number };

/** Return how many places of a box stand how, in the order in which they are shown. */
export function tallyOf(standing: BoxStanding | undefined): Tally[] {
  if (standing === undefined) return [];
  const mark = standing.mark === "waiting" || standing.mark === "queued" ? standing.mark : "working";
  const all: Tally[] = [
    { mark: "done", count: standing.done ?? 0 },
    { mark, count: standing.open ?? 0 },
    { mark: "failed", count: standing.failed ?? 0 },
    { mark: "skipped", count: standing.skipped ?? 0 },
  ];
  return all.filter(({ count }) => count > 0);
}

export function totalOf(tally: readonly Tally[]): number {
  return tally.reduce((sum, { count }) => sum + count, 0);
}

/** "38 ✓ 1 ● 1 ✗" */
export function tallyText(tally: readonly Tally[]): string {
  return tally.map(({ mark, count }) => `${count.toLocaleString("en")} ${MARK_SIGNS[mark]}`).join(" ");
}

/** Return the mark of a box; what has not begun is idle. */
export function markOf(standing: StandingView | undefined, id: string): Mark {
  return standing?.boxes[id]?.mark ?? "idle";
}

export function titleOf(box: DrawnBox): string {
  return box.title || (box.shape === "start" ? "start" : box.id);
}

/** Return what a box is called: "charge, done, 2 done, leads to ship and email". */
export function nameOf(box: DrawnBox, standing: StandingView | undefined, targets: readonly string[]): string {
  const own = standing?.boxes[box.id];
  const tally = tallyOf(own);
  const parts = [titleOf(box).slice(0, 200), markOf(standing, box.id)];
  if (totalOf(tally) > 1) parts.push(tally.map(({ mark, count }) => `${count} ${mark}`).join(", "));
  parts.push(...(own?.badges ?? []));
  if (targets.length > 0) parts.push(`leads to ${listed(targets)}`);
  return parts.join(", ");
}

/** "a", "a and b", "a, b and c" */
export function listed(names: readonly string[]): string {
  return names.length < 2 ? (names[0] ?? "") : `${names.slice(0, -1).join(", ")} and ${names.at(-1)}`;
}

/** Return the titles of the boxes that each box leads to. */
export function targetsOf(picture: DrawnPicture): Map<string, string[]> {
  const titles = new Map(picture.boxes.map((box) => [box.id, titleOf(box)]));
  const found = new Map<string, string[]>();
  for (const { source, to } of picture.arrows) {
    const own = found.get(source) ?? [];
    if (own.length < 5) own.push((titles.get(to) ?? to).slice(0, 60));
    found.set(source, own);
  }
  return found;
}

/** How thick an arrow is: thicker the more often it was taken. */
export function arrowWidth(times: number): number {
  return times === 0 ? 1.5 : Math.min(5, 2.4 + Math.log10(times));
}

/** Return the letters of the groups that have no area of their own. */
export function groupLetters(picture: DrawnPicture): Map<string, string> {
  const found = new Map<string, string>();
  for (const group of picture.groups) if (!group.w) found.set(group.id, letterOf(found.size));
  return found;
}

function letterOf(index: number): string {
  const letter = String.fromCharCode(65 + (index % 26));
  return index < 26 ? letter : letter + String(Math.floor(index / 26) + 1);
}

/** How an arrow is drawn above others: those that were taken last. */
export function byStrength(arrows: readonly DrawnArrow[], standing: StandingView | undefined): DrawnArrow[] {
  const weight = (arrow: DrawnArrow): number => ((standing?.arrows[arrow.id] ?? 0) > 0 ? 1 : 0);
  return [...arrows].sort((one, other) => weight(one) - weight(other));
}
