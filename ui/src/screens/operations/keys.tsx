/** API keys. A new one is shown once. */
import { useState, type FormEvent, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { usePages } from "../../api/pages";
import { queries } from "../../api/queries";
import type { CreatedKey, KeyView } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { Dialog } from "../../parts/dialog";
import { ProblemNote } from "../../parts/problem";
import { Rows } from "../../parts/rows";
import { MarkWord } from "../../parts/state";
import { Age } from "../../parts/time";
import { copyText } from "../../shell/notices";
import { useSending } from "../../shell/sending";
import { signInWithKey } from "../../shell/session";

const SCOPES = ["read", "start", "decide", "operate", "work", "admin"];
const DAY_SECONDS = 86_400;

export function Keys(): ReactElement {
  const [revoking, setRevoking] = useState<KeyView | null>(null);
  const [isCreating, setCreating] = useState(false);
  const keys = usePages(["keys"], async (cursor, signal) => {
    const page = await read(api.GET("/api/v1/keys", { params: { query: { limit: 100, cursor } }, signal }));
    return { rows: page.keys, cursor: page.cursor };
  }, 10_000);
  return (
    <>
      <Rows label="Keys" head={["state", "name", "may", "groups", "tenant", "created", "expires", ""]} error={keys.error} retry={keys.retry} more={keys.more} empty="No key: this server is open to every program on its machine.">
        {keys.rows?.map((key) => (
          <tr key={key.id}>
            <td>{key.is_valid ? <MarkWord mark="done" word="valid" /> : <MarkWord mark="cancelled" word={key.revoked_at ? "revoked" : "expired"} />}</td>
            <td>{key.name}</td>
            <td>{key.scopes.join(", ")}</td>
            <td>{key.groups.join(", ")}</td>
            <td>{key.tenant}</td>
            <td><Age at={key.created_at} /></td>
            <td>{key.expires_at ? <Age at={key.expires_at} /> : "never"}</td>
            <td>{key.is_valid && <button type="button" className="danger" onClick={() => setRevoking(key)}>Revoke</button>}</td>
          </tr>
        ))}
      </Rows>
      <span><button type="button" onClick={() => setCreating(true)}>Create a key</button></span>
      {isCreating && <CreateDialog onClose={() => setCreating(false)} />}
      {revoking && (
        <ActionDialog title={`Revoke ${revoking.name}?`} verb="Revoke" isDanger isReasonAsked={false} said="Revoked" onClose={() => setRevoking(null)}
          act={async () => {
            await read(api.DELETE("/api/v1/keys/{key}", { params: { path: { key: revoking.id } } }));
            await queries.invalidateQueries({ queryKey: ["keys"] });
          }}
          command={() => weftCommand("keys", ["revoke", revoking.id])}>
          <p>Servers refuse it within a second, and its sessions end.</p>
        </ActionDialog>
      )}
    </>
  );
}

function CreateDialog({ onClose }: { onClose: () => void }): ReactElement {
  const [made, setMade] = useState<CreatedKey | null>(null);
  const { error, isSending, send } = useSending();
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const form = new FormData(event.currentTarget);
    const words = (name: string): string[] => String(form.get(name) ?? "").split(/[\s,]+/).filter(Boolean);
    const days = Number(form.get("days"));
    const body = {
      name: String(form.get("name") ?? ""),
      scopes: form.getAll("scope").map(String),
      groups: words("groups"),
      tenant: String(form.get("tenant") ?? "").trim(),
      ...(days > 0 ? { expires_seconds: days * DAY_SECONDS } : {}),
    };
    send(async () => {
      const created = await read(api.POST("/api/v1/keys", { body }));
      setMade(created);
      // The server asks for a key from now on. A dialog that asks for it must not cover the only place where it is shown.
      if (created.closes) await signInWithKey(created.secret);
      void queries.invalidateQueries();
    });
  };
  if (made) return <Created made={made} onClose={onClose} />;
  return (
    <Dialog title="Create a key" onClose={onClose}>
      <form onSubmit={submit}>
        <label className="column">Name <input name="name" required autoFocus /></label>
        <fieldset className="row">
          <legend>May</legend>
          {SCOPES.map((scope) => <label key={scope}><input type="checkbox" name="scope" value={scope} defaultChecked={scope === "read"} /> {scope}</label>)}
        </fieldset>
        <label className="column">Groups it answers questions for <input name="groups" placeholder="role:ops" /></label>
        <label className="column">Tenant <input name="tenant" /></label>
        <label className="column">Expires after so many days (empty: never) <input name="days" inputMode="numeric" pattern="[0-9]*" /></label>
        {error !== null && <ProblemNote error={error} />}
        <div className="buttons"><button type="button" onClick={onClose}>Back</button><button className="primary" disabled={isSending}>Create</button></div>
      </form>
    </Dialog>
  );
}

function Created({ made, onClose }: { made: CreatedKey; onClose: () => void }): ReactElement {
  return (
    <Dialog title={`The key ${made.key.name}`} onClose={onClose}>
      <p>This is the only time that it is shown.</p>
      <pre className="secret">{made.secret}</pre>
      {made.closes && <p>This server was open until now. From now on it asks everybody for a key. This page is signed in with this one.</p>}
      <div className="buttons">
        <button type="button" onClick={onClose}>Close</button>
        <button type="button" className="primary" onClick={() => copyText(made.secret)}>Copy</button>
      </div>
    </Dialog>
  );
}
