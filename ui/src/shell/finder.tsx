/** The palette: one field for everything. The field is there at once, so that nothing typed is lost; what it finds comes after. */
import { useState, type ReactElement } from "react";

import { Dialog } from "../parts/dialog";
import { part } from "./part";

export type Entry = { run: () => void };

const Found = part(() => import("./palette"), <ul id="found" role="listbox" aria-label="Found" />);

export function Finder({ onClose }: { onClose: () => void }): ReactElement {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const [entries, setEntries] = useState<readonly Entry[]>([]);
  const here = Math.min(at, entries.length - 1);
  const open = (entry: Entry | undefined): void => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  return (
    <Dialog title="Find" onClose={onClose} isAtTop>
      <input
        autoFocus role="combobox" aria-expanded="true" aria-controls="found" aria-activedescendant={entries[here] ? "found-" + here : undefined} autoComplete="off"
        aria-label="Find a run, workflow, step, question or screen" placeholder="the beginning of an id, or a part of a name" value={text}
        onChange={(event) => { setText(event.target.value); setAt(0); }}
        onKeyDown={(event) => {
          if (event.key === "ArrowDown") setAt(Math.min(here + 1, entries.length - 1));
          else if (event.key === "ArrowUp") setAt(Math.max(here - 1, 0));
          else if (event.key === "Enter") open(entries[here]);
          else return;
          event.preventDefault();
        }}
      />
      <Found text={text.trim()} here={here} onFound={setEntries} onOpen={open} />
    </Dialog>
  );
}
