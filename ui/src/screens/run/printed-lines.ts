/** What steps printed, as rows: lines, what was left out between them, and who printed. Pure. */
import type { LogLine } from "../../api/schema";

export type PrintedRow =
  | { kind: "by"; key: string; place: string; attempt: number }
  | { kind: "gap"; key: string; lost: number }
  | { kind: "line"; key: string; line: LogLine };

export const LINES_KEPT = 2_000;

/** Add lines at the end. Lines that are there already are left out, and only the newest are kept. */
export function withLines(known: readonly LogLine[], lines: readonly LogLine[], kept = LINES_KEPT): LogLine[] {
  const last = known.at(-1)?.number ?? 0;
  return [...known, ...lines.filter((line) => line.number > last)].slice(-kept);
}

export function printedRows(lines: readonly LogLine[]): PrintedRow[] {
  const rows: PrintedRow[] = [];
  let number = 0;
  let by = "";
  for (const line of lines) {
    const lost = line.number - number - 1;
    if (lost > 0) rows.push({ kind: "gap", key: `gap ${line.number}`, lost });
    number = line.number;
    const whose = `${line.place} ${line.attempt}`;
    if (whose !== by) rows.push({ kind: "by", key: `by ${line.number}`, place: line.place, attempt: line.attempt });
    by = whose;
    rows.push({ kind: "line", key: String(line.number), line });
  }
  return rows;
}
