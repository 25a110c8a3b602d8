/** What a command would do, as the server says before it is given. */
import { keepPreviousData, useQuery } from "@tanstack/react-query";
import { useEffect, useState, type ReactElement } from "react";

import { apiUrl, Problem } from "../../api/client";
import type { DryRun, DryPlace } from "../../api/schema";
import { ProblemNote } from "../../parts/problem";
import { counted } from "../../shell/words";

const TYPING_MS = 350;
const SHOWN = 8;

/** Ask what a command would do. The body is asked for again when typing has stopped. */
export function useDryRun(id: string, command: "cancel" | "retry" | "fork", body: object | null): { plan: DryRun | undefined; error: unknown; isOld: boolean } {
  const text = JSON.stringify(body);
  const [settled, setSettled] = useState(text);
  useEffect(() => {
    const timer = setTimeout(() => setSettled(text), TYPING_MS);
    return () => clearTimeout(timer);
  }, [text]);
  const asked = useQuery({
    queryKey: ["dry-run", id, command, settled],
    queryFn: ({ signal }) => askDryRun(id, command, JSON.parse(settled) as object, signal),
    enabled: settled !== "null",
    retry: false,
    gcTime: 0,
    staleTime: 0,
    placeholderData: keepPreviousData,
  });
  return { plan: asked.data, error: asked.error, isOld: asked.isFetching || settled !== text };
}

async function askDryRun(id: string, command: string, body: object, signal: AbortSignal): Promise<DryRun> {
  const answer = await fetch(apiUrl(`/runs/${encodeURIComponent(id)}/${command}`), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ ...body, dry_run: true }),
    signal,
  });
  const data: unknown = await answer.json();
  if (!answer.ok) throw new Problem(data as Problem["details"], answer.status);
  return data as DryRun;
}

export function DryRunNote({ plan, error, isOld }: ReturnType<typeof useDryRun>): ReactElement {
  if (error) return <ProblemNote error={error} />;
  if (plan === undefined) return <p className="muted" role="status">Asking what it would do…</p>;
  return (
    <div className="dry-run column" role="status" aria-busy={isOld}>
      <p><strong>{plan.ok ? "It would work." : "It would be refused."}</strong> {plan.summary}</p>
      {plan.refused?.map((one, at) => (
        <p key={at} className="refused">{one.place && <code>{one.place} </code>}{one.message !== plan.summary && one.message} {one.hint}</p>
      ))}
      <Places title="Undone" places={plan.undone} />
      <Places title="Performed again" places={plan.repeated} />
      <Places title="Given up" places={plan.cancelled} />
      {(plan.children ?? 0) > 0 && <p>{counted(plan.children!, "run")} below it.</p>}
    </div>
  );
}

function Places({ title, places }: { title: string; places: DryPlace[] | undefined }): ReactElement | null {
  if (!places || places.length === 0) return null;
  return (
    <details open={places.length <= SHOWN}>
      <summary>{title}: {places.length}</summary>
      <ul>
        {places.map((one, at) => (
          <li key={at}><code>{one.place}</code> {one.what && one.what !== one.place && one.what}{one.note && <em> {one.note}</em>}</li>
        ))}
      </ul>
    </details>
  );
}
