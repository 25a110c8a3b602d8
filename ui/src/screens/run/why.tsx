/** Why a run stands as it stands: all waits, the path that was taken, what joins lack, what did not run. */
import type { ReactElement, ReactNode } from "react";

import type { ExplainedLine, Explanation, Waiting } from "../../api/schema";
import { copyText } from "../../shell/notices";
import { select, travel } from "./chosen";

type Props = { explanation: Explanation; light: (arrows: string[]) => void; renderWait: (wait: Waiting) => ReactNode };

/** So many waits are in the line itself. */
export const WAITS_SHOWN = 3;
const LINES_SHOWN = 200;

export function Why({ explanation, light, renderWait }: Props): ReactElement {
  const { waiting, sections = [], progress = [], hint } = explanation;
  return (
    <div className="why">
      {waiting.length > WAITS_SHOWN && <div className="why-part"><h2>all it waits for</h2>{waiting.map(renderWait)}</div>}
      {progress.length > 0 && (
        <div className="why-part"><h2>progress</h2>
          <ul>{progress.map((one) => <li key={one.place}><code><bdi>{one.place}</bdi></code> {one.done.toLocaleString("en")} of {one.total.toLocaleString("en")}</li>)}</ul>
        </div>
      )}
      {sections.map((section) => (
        <div key={section.name} className="why-part"><h2>{section.heading}</h2>
          <ul>
            {section.lines.slice(0, LINES_SHOWN).map((line, at) => <li key={at}><WhyLine line={line} light={light} /></li>)}
            {section.lines.length > LINES_SHOWN && <li className="muted">{(section.lines.length - LINES_SHOWN).toLocaleString("en")} more</li>}
          </ul>
        </div>
      ))}
      {hint && <div className="why-part"><h2>in a terminal</h2><pre>{hint}</pre><button type="button" className="plain" onClick={() => copyText(hint)}>Copy</button></div>}
    </div>
  );
}

/** A sentence. A click lights its arrows, or selects its box where it has none. */
export function WhyLine({ line, light }: { line: ExplainedLine; light: (arrows: string[]) => void }): ReactElement {
  const { text, arrows = [], boxes = [], seq = 0 } = line;
  const box = boxes.find((one) => one !== "");
  const isButton = arrows.length > 0 || box !== undefined;
  const act = (): void => {
    light(arrows);
    if (arrows.length === 0 && box !== undefined) select(box);
  };
  return (
    <span className="row">
      {isButton ? <button type="button" className="plain line" onClick={act}><bdi>{text}</bdi></button> : <span className="wrap"><bdi>{text}</bdi></span>}
      {seq > 0 && <button type="button" className="plain muted" title="Show the run as it stood then" onClick={() => travel(seq)}>event {seq}</button>}
    </span>
  );
}
