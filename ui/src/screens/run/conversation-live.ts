/** What an agent says while it says it: the chunks of its stream, by turn. Pure. */
import type { ChunkView } from "../../api/schema";

/** A chunk of an agent's stream. Streams are data of a run, so nothing about them is certain. */
type Said = { run: string; turn: number; kind: "text" | "reasoning"; text: string };

export type LiveTurn = { attempt: number; text: string; reasoning: string };
export type LiveTurns = ReadonlyMap<number, LiveTurn>;

const KEPT_CHARS = 100_000;
/** A turn has ended, and its answer is asked for, long before this many turns are under way. */
const KEPT_TURNS = 4;
export const SILENCE: LiveTurns = new Map();

/** Add what one run of the tree says. A later attempt of a turn begins it anew. */
export function withSaid(known: LiveTurns, chunks: readonly ChunkView[], run: string): LiveTurns {
  const turns = new Map(known);
  for (const { attempt, chunk } of chunks) {
    const said = readSaid(chunk);
    if (said === null || said.run !== run) continue;
    const before = turns.get(said.turn);
    if (before !== undefined && before.attempt > attempt) continue;
    const turn = before?.attempt === attempt ? before : { attempt, text: "", reasoning: "" };
    turns.set(said.turn, { ...turn, [said.kind]: (turn[said.kind] + said.text).slice(-KEPT_CHARS) });
  }
  for (const turn of [...turns.keys()].sort((one, other) => one - other).slice(0, -KEPT_TURNS)) turns.delete(turn);
  return turns;
}

function readSaid(chunk: unknown): Said | null {
  if (typeof chunk !== "object" || chunk === null) return null;
  const { run, turn, kind, text } = chunk as Record<string, unknown>;
  if (typeof run !== "string" || typeof turn !== "number" || typeof text !== "string") return null;
  return kind === "text" || kind === "reasoning" ? { run, turn, kind, text } : null;
}
