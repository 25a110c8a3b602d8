/** The filter of a run's screen: text, `state:failed`, `kind:ask`, `box:ship`. All words must fit. Pure. */
import type { DrawnBox, DrawnPicture, StandingView } from "../../api/schema";
import { tallyOf } from "../../parts/picture-look";

export type RunFilter = { states: string[]; kinds: string[]; boxes: string[]; texts: string[] };

export function parseFilter(q: string): RunFilter {
  const found: RunFilter = { states: [], kinds: [], boxes: [], texts: [] };
  for (const word of q.toLowerCase().split(/\s+/).filter(Boolean)) {
    const [, name, value] = /^(state|kind|box):(.+)$/.exec(word) ?? [];
    if (name === "state") found.states.push(value!);
    else if (name === "kind") found.kinds.push(value!);
    else if (name === "box") found.boxes.push(value!);
    else found.texts.push(word);
  }
  return found;
}

export function isEmpty(filter: RunFilter): boolean {
  return filter.states.length + filter.kinds.length + filter.boxes.length + filter.texts.length === 0;
}

type Subject = { box: string; kind: string; marks: readonly string[]; text: string };

/** Whether something fits: a box with its marks, or a place with the one that it has. */
export function fits(filter: RunFilter, subject: Subject): boolean {
  const [box, text] = [subject.box.toLowerCase(), subject.text.toLowerCase()];
  return (
    (filter.states.length === 0 || filter.states.some((state) => subject.marks.includes(state))) &&
    (filter.kinds.length === 0 || filter.kinds.includes(subject.kind.toLowerCase())) &&
    (filter.boxes.length === 0 || filter.boxes.some((name) => box === name || box.endsWith("/" + name))) &&
    filter.texts.every((part) => text.includes(part) || box.includes(part))
  );
}

/** Return the boxes that fit; null if nothing is filtered. */
export function foundBoxes(q: string, picture: DrawnPicture | undefined, standing: StandingView | undefined): Set<string> | null {
  const filter = parseFilter(q);
  if (isEmpty(filter) || picture === undefined) return null;
  return new Set(picture.boxes.filter((box) => fits(filter, subjectOf(box, standing))).map((box) => box.id));
}

function subjectOf(box: DrawnBox, standing: StandingView | undefined): Subject {
  const own = standing?.boxes[box.id];
  return {
    box: box.id,
    kind: box.kind ?? "",
    marks: [own?.mark ?? "idle", ...tallyOf(own).map(({ mark }) => mark)],
    text: `${box.title ?? ""} ${box.subtitle ?? ""} ${box.tip ?? ""}`,
  };
}
