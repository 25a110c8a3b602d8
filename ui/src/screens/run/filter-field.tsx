/** The field that filters a run: it dims the picture and thins the timeline and the log. */
import { useEffect, useState, type ReactElement } from "react";

import { filterRun, type RunChosen } from "./chosen";

const TYPING_MS = 200;

export function RunFilterField({ chosen }: { chosen: RunChosen }): ReactElement {
  const [text, setText] = useState(chosen.q);
  const [known, setKnown] = useState(chosen.q);
  if (known !== chosen.q) {
    // The address changed: by Back, or by what was typed here.
    setKnown(chosen.q);
    if (text.trim() !== chosen.q) setText(chosen.q);
  }
  useEffect(() => {
    const timer = setTimeout(() => filterRun(text.trim()), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  return (
    <input
      id="run-filter" type="search" className="run-filter" value={text} aria-label="Filter this run: text, state:failed, kind:ask, box:ship"
      placeholder="/ filter: text state:failed kind:ask box:ship" onChange={(event) => setText(event.target.value)}
    />
  );
}
