/** The dialogs of the actions on a run. Each says what it will do, asks for a reason, and starts with the focus on Back. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import type { RunDetail } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { shellWord, weftCommand } from "../../parts/command";
import { DryRunNote, useDryRun } from "./dry-run";
import { refreshRun } from "./live";
import { noteSent } from "./sent";

export type Asked =
  | { action: "pause" | "resume" | "cancel" }
  | { action: "retry"; place?: string }
  | { action: "send"; names: string[] }
  | { action: "fork"; before?: string; at?: number };

type Props = { run: RunDetail; onClose: () => void };

async function done<T>(id: string, asked: Promise<T>): Promise<T> {
  const answer = await asked;
  noteSent(id);
  await refreshRun(id);
  return answer;
}

export function RemarkDialog({ run, action, onClose }: Props & { action: "pause" | "resume" }): ReactElement {
  const isPause = action === "pause";
  const path = { params: { path: { id: run.id } } };
  const send = (reason: string): Promise<unknown> =>
    isPause ? read(api.POST("/api/v1/runs/{id}/pause", { ...path, body: { reason } })) : read(api.POST("/api/v1/runs/{id}/resume", { ...path, body: { reason } }));
  return (
    <ActionDialog
      title={isPause ? `Pause ${run.id}?` : `Resume ${run.id}?`} verb={isPause ? "Pause" : "Resume"} said={isPause ? "Pause asked for" : "Resumed"}
      command={(reason) => weftCommand(action, [run.id], [["--reason", reason]])} act={(reason) => done(run.id, send(reason))} onClose={onClose}
    >
      <p>{isPause ? "It starts no new work until it is resumed. What is in hand is finished and recorded." : "It goes on from where it stands."}</p>
    </ActionDialog>
  );
}

export function CancelDialog({ run, onClose }: Props): ReactElement {
  const [force, setForce] = useState(false);
  const dry = useDryRun(run.id, "cancel", force ? { force } : {});
  const isRoot = run.parent === null;
  return (
    <ActionDialog
      title={`Cancel ${run.id}?`} verb="Cancel the run" isDanger said="Cancel asked for"
      command={(reason) => weftCommand("cancel", [run.id], [["--reason", reason]]) + (force ? " --force" : "")}
      act={(reason) => done(run.id, read(api.POST("/api/v1/runs/{id}/cancel", { params: { path: { id: run.id } }, body: { reason, force } })))}
      onClose={onClose}
    >
      <p>What it did is undone, newest first{isRoot ? ", and all runs below it are cancelled with it" : ""}.</p>
      <DryRunNote {...dry} />
      <label className="row"><input type="checkbox" checked={force} onChange={(event) => setForce(event.target.checked)} /> End it without running its code</label>
    </ActionDialog>
  );
}

export function RetryDialog({ run, place, onClose }: Props & { place: string | undefined }): ReactElement {
  const body = place ? { place } : {};
  const dry = useDryRun(run.id, "retry", body);
  return (
    <ActionDialog
      title={place ? `Retry ${run.id} from ${place}?` : `Retry ${run.id}?`} verb="Retry" said="Retry asked for"
      command={(reason) => weftCommand("retry", [run.id], [["--from", place ?? ""], ["--reason", reason]])}
      act={(reason) => done(run.id, read(api.POST("/api/v1/runs/{id}/retry", { params: { path: { id: run.id } }, body: { ...body, reason } })))}
      onClose={onClose}
    >
      <p>{place ? "Everything from there on is performed again." : "What failed is performed again. Recorded steps are not repeated."}</p>
      <DryRunNote {...dry} />
    </ActionDialog>
  );
}

export function SendDialog({ run, names, onClose }: Props & { names: string[] }): ReactElement {
  const [name, setName] = useState(names[0] ?? "");
  const [text, setText] = useState("");
  const parsed = parseBody(text);
  return (
    <ActionDialog
      title={`Send a message to ${run.id}`} verb="Send" isReasonAsked={false} said="Sent"
      command={() => `weft send ${shellWord(run.id)} ${shellWord(name || "NAME")} ${shellWord(text.trim() || "null")}`}
      act={() => {
        if ("problem" in parsed) return Promise.reject(new Error(parsed.problem));
        return done(run.id, read(api.POST("/api/v1/runs/{id}/messages", { params: { path: { id: run.id } }, body: { name, body: parsed.value as never } })));
      }}
      onClose={onClose}
    >
      <label className="column">Name
        <input value={name} required maxLength={200} list="message-names" onChange={(event) => setName(event.target.value)} />
      </label>
      <datalist id="message-names">{names.map((one) => <option key={one} value={one} />)}</datalist>
      <label className="column">Content, as JSON
        <textarea rows={4} className="mono" value={text} placeholder="null" aria-invalid={"problem" in parsed} onChange={(event) => setText(event.target.value)} />
      </label>
      {"problem" in parsed && <p className="refused">{parsed.problem}</p>}
    </ActionDialog>
  );
}

/** Read JSON that somebody types; nothing is null. */
export function parseBody(text: string): { value: unknown } | { problem: string } {
  if (text.trim() === "") return { value: null };
  try {
    return { value: JSON.parse(text) as unknown };
  } catch (error) {
    return { problem: `This is not JSON: ${error instanceof Error ? error.message : ""}. A text needs quotation marks.` };
  }
}
