/** Playing a run: a clock that runs through its events, and skips the times in which nothing happened. Pure. */

export type Step = { seq: number; at: number };
export type Playing = { seq: number; clock: number };

export const SPEEDS = [1, 4, 16] as const;
const GAP_MS = 1000;

/** Return the speed after this one. */
export function nextSpeed(speed: number): number {
  return SPEEDS[(SPEEDS.findIndex((one) => one === speed) + 1) % SPEEDS.length] ?? 1;
}

/** Let time pass. `steps` are the events after `playing.seq` that are known, oldest first. */
export function played(playing: Playing, steps: readonly Step[], elapsedMs: number, speed: number): Playing {
  let clock = playing.clock + elapsedMs * speed;
  let seq = playing.seq;
  for (const step of steps) {
    if (step.seq <= seq) continue;
    const isGap = seq === playing.seq && step.at - playing.clock > GAP_MS * speed;
    if (isGap) clock = Math.max(clock, step.at);
    if (step.at > clock) break;
    seq = step.seq;
  }
  return { seq, clock };
}
