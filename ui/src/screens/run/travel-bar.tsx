/** The slider through the events of a run, and playing them. */
import "./travel-bar.css";

import type { ReactElement } from "react";

import { momentText } from "../../parts/times";
import { sayUrgently, toast } from "../../shell/notices";
import { useKeys } from "../../shell/keys";
import { useSettings } from "../../shell/settings";
import { travel, type RunChosen } from "./chosen";
import { useStanding } from "./data";
import { nextSpeed } from "./play";
import { neighbour, usePlay, useTravel } from "./travel";

/** `seq` is the number of the newest event. */
export function TravelBar({ run, seq }: { run: RunChosen; seq: number }): ReactElement {
  const [shown, want] = useTravel(run, seq);
  const play = usePlay(run, seq, shown, want);
  const toSelected = (by: -1 | 1): void => {
    if (run.sel === null) return toast("Nothing is selected.");
    neighbour(run, shown, by).then(
      (found) => (found === null ? toast(by < 0 ? "The selection has no earlier event." : "The selection has no later event.") : want(found)),
      (error: unknown) => sayUrgently(error instanceof Error ? error.message : "The server did not answer."),
    );
  };
  useKeys("Events", [
    { keys: "[", does: "One event back", run: () => want(shown - 1) },
    { keys: "]", does: "One event forth", run: () => want(shown + 1) },
    { keys: "Shift+[", does: "To the former event of the selection", run: () => toSelected(-1) },
    { keys: "Shift+]", does: "To the next event of the selection", run: () => toSelected(1) },
    { keys: "Space", does: "Play the events", run: play.toggle },
  ]);
  return (
    <section className="travel" aria-label="Events" data-past={run.at !== null}>
      <div className="travel-buttons" role="group" aria-label="Go through the events">
        <button type="button" aria-label="First event" disabled={shown <= 1} onClick={() => want(1)}>|◀</button>
        <button type="button" aria-label="One event back" title="One event back ( [ )" disabled={shown <= 1} onClick={() => want(shown - 1)}>◀</button>
        <button type="button" aria-label="One event forth" title="One event forth ( ] )" disabled={shown >= seq} onClick={() => want(shown + 1)}>▶</button>
        <button type="button" aria-label="Now" disabled={run.at === null} onClick={() => travel(null)}>▶|</button>
        <button type="button" aria-pressed={play.isPlaying} title="Play the events (Space)" disabled={seq < 2} onClick={play.toggle}>{play.isPlaying ? "Stop" : "Play"}</button>
        <button type="button" aria-label={`Speed ${play.speed} times`} onClick={() => play.setSpeed(nextSpeed(play.speed))}>×{play.speed}</button>
      </div>
      <Slider run={run} seq={seq} shown={shown} want={want} />
      <Where run={run} seq={seq} shown={shown} />
    </section>
  );
}

type Shown = { run: RunChosen; seq: number; shown: number };

/** The time of the event that is on the screen; null while another one is asked for. */
function useShownAt(run: RunChosen, shown: number): number | null {
  const standing = useStanding(run);
  const { data } = standing;
  return data && data.seq === shown && data.at !== null ? Date.parse(data.at) : null;
}

function Slider({ run, seq, shown, want }: Shown & { want: (to: number) => void }): ReactElement {
  const { zone } = useSettings();
  const at = useShownAt(run, shown);
  const text = `event ${shown} of ${seq}` + (at === null ? "" : `, ${momentText(at, zone)}`) + (run.at === null ? ", now" : "");
  return (
    <input
      type="range" className="travel-slider" aria-valuenow={Math.max(1, shown)} aria-label="Event" min={1} max={Math.max(1, seq)} step={1} value={Math.max(1, shown)} aria-valuetext={text}
      onChange={(event) => want(Number(event.currentTarget.value))}
    />
  );
}

function Where({ run, seq, shown }: Shown): ReactElement {
  const { zone } = useSettings();
  const at = useShownAt(run, shown);
  return (
    <span className="travel-where num" aria-hidden="true">
      event {shown.toLocaleString("en")} of {seq.toLocaleString("en")} · {run.at === null ? "now" : at === null ? "…" : momentText(at, zone, false)}
    </span>
  );
}
