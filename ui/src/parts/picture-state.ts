/** What boxes and arrows share while a picture is shown, so that the layout is not made again when a state changes. */
import { createContext } from "react";

import type { StandingView } from "../api/schema";
import type { BoxNote } from "./picture";

export type PictureState = {
  standing: StandingView | undefined;
  selected: string | null;
  lit: ReadonlySet<string>;
  found: ReadonlySet<string> | null;
  notes: ReadonlyMap<string, BoxNote>;
  letters: ReadonlyMap<string, string>;
  targets: ReadonlyMap<string, string[]>;
  /** So far away that only signs and titles are drawn. */
  isFar: boolean;
};

export const NOTHING: ReadonlySet<string> = new Set();
export const NO_NOTES: ReadonlyMap<string, BoxNote> = new Map();

export const PictureContext = createContext<PictureState>({
  standing: undefined, selected: null, lit: NOTHING, found: null, notes: NO_NOTES, letters: new Map(), targets: new Map(), isFar: false,
});
