/** The palette: one field for runs, workflows, steps, questions, screens, and the actions of what is selected. */
import { useEffect, useRef, useState, type ReactElement } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { Found } from "../api/schema";
import { Dialog } from "../parts/dialog";
import { ProblemNote } from "../parts/problem";
import { Sign } from "../parts/state";
import { allActions } from "./actions";
import { navigate, pathTo, queryText, runPath } from "./address";
import { STATUS_MARKS, statusWord, type Mark } from "./words";

type Entry = { key: string; group: string; title: string; about: string; mark?: Mark; run: () => void };

const SCREENS = ["runs", "inbox", "workflows", "goals", "operations"];

export default function Palette({ onClose }: { onClose: () => void }): ReactElement {
  const [text, setText] = useState("");
  const [at, setAt] = useState(0);
  const list = useRef<HTMLUListElement>(null);
  const { entries, error, isAsking } = useEntries(text.trim());
  const here = Math.min(at, entries.length - 1);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [here]);
  const open = (entry: Entry | undefined): void => {
    if (!entry) return;
    onClose();
    entry.run();
  };
  return (
    <Dialog title="Find" onClose={onClose}>
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
      {error !== null && <ProblemNote error={error} />}
      <ul id="found" ref={list} role="listbox" className="found" aria-label="Found">
        {entries.map((entry, index) => (
          <li key={entry.key} id={"found-" + index} role="option" aria-selected={index === here} onClick={() => open(entry)}>
            <span className="found-group muted">{entry.group}</span>
            {entry.mark && <Sign mark={entry.mark} />}
            <span className="cut grow"><bdi>{entry.title}</bdi></span> <span className="muted cut">{entry.about}</span>
          </li>
        ))}
      </ul>
      <p className="muted" role="status">{entries.length === 0 && !isAsking ? `Nothing begins with “${text.trim()}”.` : ""}</p>
    </Dialog>
  );
}

function useEntries(text: string): { entries: Entry[]; error: unknown; isAsking: boolean } {
  const [actions] = useState(allActions);
  const asked = useAsked(["search", text], (signal) => read(api.GET("/api/v1/search", { params: { query: { q: text, limit: 8 } }, signal })), { enabled: text !== "" });
  const fits = (title: string): boolean => title.toLowerCase().includes(text.toLowerCase());
  const own: Entry[] = actions.filter(({ title }) => fits(title)).map(({ title, about = "", run }) => ({ key: "action:" + title, group: "do", title, about, run }));
  const screens: Entry[] = SCREENS.filter(fits).map((name) => ({
    key: "screen:" + name, group: "screen", title: name[0]!.toUpperCase() + name.slice(1), about: `g ${name[0]!}`, run: () => navigate(pathTo(name)),
  }));
  const found = text !== "" && asked.data ? foundEntries(asked.data) : [];
  return { entries: text === "" ? [...own, ...screens] : [...found, ...own, ...screens], error: text === "" ? null : asked.error, isAsking: asked.isFetching };
}

function foundEntries({ runs, workflows, steps, questions }: Found): Entry[] {
  return [
    ...runs.map((run) => ({ key: "run:" + run.id, group: "run", title: run.id, about: `${run.workflow} · ${statusWord(run.status)}`, mark: STATUS_MARKS[run.status], run: () => navigate(runPath(run.id)) })),
    ...workflows.map((name) => ({ key: "workflow:" + name, group: "workflow", title: name, about: "", run: () => navigate(pathTo("workflows", name)) })),
    ...questions.map((one) => ({ key: "question:" + one.id, group: "question", title: one.title, about: one.run, run: () => navigate(pathTo("inbox", one.id)) })),
    ...steps.map((name) => ({ key: "step:" + name, group: "step", title: name, about: "what it is for", run: () => navigate(pathTo("goals") + queryText({ want: name })) })),
  ];
}
