/** The output of a stream as pieces: text of one attempt runs on, other chunks are rows. The newest 5 MB are kept. Pure. */
import type { ChunkView } from "../../api/schema";

export type Piece = { key: number; by: string; attempt: number; text: string; isText: boolean };
export type Pieces = { pieces: Piece[]; size: number; isCut: boolean; last: number };

export const KEPT_CHARS = 5 * 1024 * 1024;
const PIECE_CHARS = 16 * 1024;
export const NOTHING: Pieces = { pieces: [], size: 0, isCut: false, last: 0 };

/** Add chunks at the end. Chunks that are there already are left out. */
export function withChunks(known: Pieces, chunks: readonly ChunkView[], kept = KEPT_CHARS): Pieces {
  const pieces = [...known.pieces];
  let { size, last, isCut } = known;
  for (const { offset, by, attempt, chunk } of chunks) {
    if (offset <= last) continue;
    last = offset;
    const isText = typeof chunk === "string";
    const text = isText ? chunk : JSON.stringify(chunk);
    size += text.length;
    const before = pieces.at(-1);
    const runsOn = isText && before?.isText && before.by === by && before.attempt === attempt && before.text.length < PIECE_CHARS;
    if (runsOn) pieces[pieces.length - 1] = { ...before, text: before.text + text };
    else pieces.push({ key: offset, by, attempt, text, isText });
  }
  while (size > kept && pieces.length > 1) {
    size -= pieces.shift()!.text.length;
    isCut = true;
  }
  return { pieces, size, isCut, last };
}

/** Whether a later attempt of the same place has written since: what the former one wrote no longer counts. */
export function formerPieces(pieces: readonly Piece[]): ReadonlySet<number> {
  const newest = new Map<string, number>();
  for (const { by, attempt } of pieces) newest.set(by, Math.max(newest.get(by) ?? 0, attempt));
  return new Set(pieces.filter(({ by, attempt }) => attempt < (newest.get(by) ?? 0)).map((piece) => piece.key));
}
