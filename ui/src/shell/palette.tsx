/** What the palette finds: runs, workflows, steps, questions, screens, and the actions of what is selected. */
import { useEffect, useLayoutEffect, useMemo, useRef, useState, type ReactElement } from "react";

import { api, read } from "../api/client";
import { useAsked } from "../api/queries";
import type { Found } from "../api/schema";
import { ProblemNote } from "../parts/problem";
import { Sign } from "../parts/state";
import { allActions } from "./actions";
import { navigate, pathTo, queryText, runPath } from "./address";
import type { Entry as Chosen } from "./finder";
import { STATUS_MARKS, statusWord, type Mark } from "./words";

type Entry = Chosen & { key: string; group: string; title: string; about: string; mark?: Mark };
type Props = { text: string; here: number; onFound: (entries: readonly Entry[]) => void; onOpen: (entry: Entry) => void };

const SCREENS = ["runs", "inbox", "workflows", "goals", "operations"];

export default function FoundList({ text, here, onFound, onOpen }: Props): ReactElement {
  const list = useRef<HTMLUListElement>(null);
  const { entries, error, isAsking } = useEntries(text);
  // What is in sight can be opened: an effect that waits for the paint would miss an Enter.
  useLayoutEffect(() => onFound(entries), [entries, onFound]);
  useEffect(() => {
    list.current?.querySelector('[aria-selected="true"]')?.scrollIntoView({ block: "nearest" });
  }, [here]);
  return (
    <>
      {error !== null && <ProblemNote error={error} />}
      <ul id="found" ref={list} role="listbox" className="found" aria-label="Found">
        {entries.map((entry, index) => (
          <li key={entry.key} id={"found-" + index} role="option" aria-selected={index === here} onClick={() => onOpen(entry)}>
            <span className="found-group muted">{entry.group}</span>
            {entry.mark && <Sign mark={entry.mark} />}
            <span className="cut grow"><bdi>{entry.title}</bdi></span> <span className="muted cut">{entry.about}</span>
          </li>
        ))}
      </ul>
      <p className="muted" role="status">{entries.length === 0 && !isAsking ? `Nothing begins with “${text}”.` : ""}</p>
    </>
  );
}

function useEntries(text: string): { entries: Entry[]; error: unknown; isAsking: boolean } {
  const [actions] = useState(allActions);
  const asked = useAsked(["search", text], (signal) => read(api.GET("/api/v1/search", { params: { query: { q: text, limit: 8 } }, signal })), { enabled: text !== "" });
  const entries = useMemo(() => entriesOf(text, actions, text === "" ? undefined : asked.data), [text, actions, asked.data]);
  return { entries, error: text === "" ? null : asked.error, isAsking: asked.isFetching };
}

function entriesOf(text: string, actions: ReturnType<typeof allActions>, data: Found | undefined): Entry[] {
  const fits = (title: string): boolean => title.toLowerCase().includes(text.toLowerCase());
  const own: Entry[] = actions.filter(({ title }) => fits(title)).map(({ title, about = "", run }) => ({ key: "action:" + title, group: "do", title, about, run }));
  const screens: Entry[] = SCREENS.filter(fits).map((name) => ({
    key: "screen:" + name, group: "screen", title: name[0]!.toUpperCase() + name.slice(1), about: `g ${name[0]!}`, run: () => navigate(pathTo(name)),
  }));
  return [...(data ? foundEntries(data) : []), ...own, ...screens];
}

function foundEntries({ runs, workflows, steps, questions }: Found): Entry[] {
  return [
    ...runs.map((run) => ({ key: "run:" + run.id, group: "run", title: run.id, about: `${run.workflow} · ${statusWord(run.status)}`, mark: STATUS_MARKS[run.status], run: () => navigate(runPath(run.id)) })),
    ...workflows.map((name) => ({ key: "workflow:" + name, group: "workflow", title: name, about: "", run: () => navigate(pathTo("workflows", name)) })),
    ...questions.map((one) => ({ key: "question:" + one.id, group: "question", title: one.title, about: one.run, run: () => navigate(pathTo("inbox", one.id)) })),
    ...steps.map((name) => ({ key: "step:" + name, group: "step", title: name, about: "what it is for", run: () => navigate(pathTo("goals") + queryText({ want: name })) })),
  ];
}
