/**
 * From moments to pixels and back. Idle gaps are folded to breaks of a fixed width. Pure.
 *
 * Zooming and panning are done in pixels of the scale that is on the screen, so a folded gap counts as its break.
 */

export type Gap = { since: number; until: number };
export type View = { since: number; until: number };
type Piece = { since: number; until: number; x: number; width: number; gap: Gap | null };
export type Scale = { view: View; width: number; pieces: Piece[] };

const BREAK_PX = 76;
const SPAN_MIN_MS = 4;

/** Return the scale of a view. `gaps` are those that are folded, oldest first. */
export function makeScale(view: View, gaps: Gap[], width: number): Scale {
  const folded = gaps.map((gap) => ({ gap, since: Math.max(gap.since, view.since), until: Math.min(gap.until, view.until) }))
    .filter((one) => one.until > one.since);
  const breakWidth = Math.min(BREAK_PX, width / 2 / Math.max(1, folded.length));
  const active = view.until - view.since - folded.reduce((sum, one) => sum + one.until - one.since, 0);
  const left = width - breakWidth * folded.length;
  const pieces: Piece[] = [];
  let [at, x] = [view.since, 0];
  const addUntil = (until: number): void => {
    if (until <= at) return;
    const size = ((until - at) / active) * left;
    pieces.push({ since: at, until, x, width: size, gap: null });
    [at, x] = [until, x + size];
  };
  for (const { gap, since, until } of folded) {
    addUntil(since);
    const size = active > 0 ? breakWidth : width / folded.length;
    pieces.push({ since, until, x, width: size, gap });
    [at, x] = [until, x + size];
  }
  addUntil(view.until);
  return { view, width, pieces };
}

/** Return the pixel of a moment. Moments outside the view lie outside the width. */
export function xOf(scale: Scale, ms: number): number {
  const piece = scale.pieces.find((one) => ms <= one.until) ?? scale.pieces.at(-1);
  if (!piece) return 0;
  return piece.x + ((ms - piece.since) / (piece.until - piece.since)) * piece.width;
}

export function msOf(scale: Scale, x: number): number {
  const piece = scale.pieces.find((one) => x <= one.x + one.width) ?? scale.pieces.at(-1);
  if (!piece || piece.width === 0) return scale.view.since;
  return piece.since + ((x - piece.x) / piece.width) * (piece.until - piece.since);
}

/** Return the view between two pixels, within `all`. An edge inside a break moves to the nearer end of its gap. */
export function viewBetween(scale: Scale, left: number, right: number, all: View): View {
  const since = Math.max(all.since, edge(scale, left));
  const until = Math.min(all.until, edge(scale, right));
  if (until - since >= SPAN_MIN_MS) return { since, until };
  const middle = Math.min(all.until - SPAN_MIN_MS / 2, Math.max(all.since + SPAN_MIN_MS / 2, (since + until) / 2));
  return { since: middle - SPAN_MIN_MS / 2, until: middle + SPAN_MIN_MS / 2 };
}

function edge(scale: Scale, x: number): number {
  const within = scale.pieces.find((one) => one.gap !== null && x > one.x && x < one.x + one.width);
  if (!within) return msOf(scale, x);
  return x - within.x < within.width / 2 ? within.since : within.until;
}

/** Zoom around a pixel. A factor above 1 shows less time in more detail. */
export function zoomAround(scale: Scale, x: number, factor: number, all: View): View {
  return viewBetween(scale, x - x / factor, x + (scale.width - x) / factor, all);
}

/** Move the view by pixels and keep its width, as far as `all` allows. */
export function panBy(scale: Scale, pixels: number, all: View): View {
  const span = scale.view.until - scale.view.since;
  const since = Math.min(all.until - span, Math.max(all.since, edge(scale, pixels)));
  return since < all.since ? all : { since, until: since + span };
}

const STEPS = [
  1, 2, 5, 10, 20, 50, 100, 200, 500, 1e3, 2e3, 5e3, 10e3, 15e3, 30e3, 60e3, 120e3, 300e3, 600e3, 900e3, 1800e3,
  3600e3, 7200e3, 10_800e3, 21_600e3, 43_200e3, 86_400e3, 2 * 86_400e3, 7 * 86_400e3, 30 * 86_400e3, 365 * 86_400e3,
];
const TICK_PX = 88;
/** The room that the text of a moment takes. A moment without it would be cut off or lie under a break. */
const LABEL_PX = 80;
export type Tick = { ms: number; x: number; step: number };

/** Return round moments that are far enough apart. `offset` is that of the zone in milliseconds. */
export function ticksOf(scale: Scale, offset = 0): Tick[] {
  const widest = scale.pieces.filter((one) => one.gap === null && one.width > 0);
  const perPixel = Math.min(...widest.map((one) => (one.until - one.since) / one.width));
  if (!Number.isFinite(perPixel)) return [];
  const step = STEPS.find((one) => one / perPixel >= TICK_PX) ?? STEPS.at(-1)!;
  const ticks: Tick[] = [];
  for (const piece of widest) {
    for (let ms = Math.ceil((piece.since + offset) / step) * step - offset; ms <= piece.until; ms += step) {
      const x = xOf(scale, ms);
      if (x + LABEL_PX <= piece.x + piece.width) ticks.push({ ms, x, step });
    }
  }
  return ticks;
}
