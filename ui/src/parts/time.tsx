/** Times on the screen: an age with the exact time on hover and focus; a click copies ISO 8601. */
import type { ReactElement } from "react";

import { useNow } from "../shell/clock";
import { copyText } from "../shell/notices";
import { useSettings } from "../shell/settings";
import { agoText, durationText, momentText, zoneText } from "./times";

type At = string | number;

export function msOf(at: At): number {
  return typeof at === "number" ? at : Date.parse(at);
}

function Copied({ at, children }: { at: number; children: string }): ReactElement {
  const { zone } = useSettings();
  const exact = `${momentText(at, zone)} ${zoneText(zone, at)}`;
  return (
    <button type="button" className="time" title={exact} aria-label={`${children}, ${exact}, copy`} onClick={(event) => {
      event.stopPropagation();
      copyText(new Date(at).toISOString());
    }}>
      {children}
    </button>
  );
}

/** How long ago, or in how long. */
export function Age({ at }: { at: At }): ReactElement {
  const ms = msOf(at);
  const now = useNow(1000);
  return <Copied at={ms}>{agoText(ms, now)}</Copied>;
}

/** The exact time to the millisecond. */
export function Moment({ at, withDate = false }: { at: At; withDate?: boolean }): ReactElement {
  const { zone } = useSettings();
  return <Copied at={msOf(at)}>{momentText(msOf(at), zone, withDate)}</Copied>;
}

/** How long something took, or has taken so far. */
export function Took({ from, to }: { from: At; to: At | null | undefined }): ReactElement {
  return to === null || to === undefined ? <Growing from={msOf(from)} /> : <span className="num">{durationText(msOf(to) - msOf(from))}</span>;
}

function Growing({ from }: { from: number }): ReactElement {
  const now = useNow(1000);
  return <span className="num">{durationText(Math.max(0, now - from))}</span>;
}
