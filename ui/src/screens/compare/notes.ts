/** What is noted at the boxes of two runs: in which of them they are, and whether their values differ. Pure. */
import type { BoxDifference } from "../../api/schema";
import type { BoxNote } from "../../parts/picture";

export function noteOf(box: BoxDifference): BoxNote | null {
  if (box.presence === "a") return { kind: "removed", text: "only in A" };
  if (box.presence === "b") return { kind: "added", text: "only in B" };
  if (box.a !== null && box.b !== null && box.a.mark !== box.b.mark) return { kind: "changed", text: `${box.a.mark}, in B ${box.b.mark}` };
  return box.is_changed ? { kind: "changed", text: "other values" } : null;
}

export function notesOf(boxes: readonly BoxDifference[]): Map<string, BoxNote> {
  const found = new Map<string, BoxNote>();
  for (const box of boxes) {
    const note = noteOf(box);
    if (note) found.set(box.box, note);
  }
  return found;
}
