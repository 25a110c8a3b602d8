/** Who is asking. An expired session is renewed in a dialog over the page, so nothing that was typed is lost. */
import { useEffect, useState, type FormEvent, type ReactElement } from "react";

import { api, apiUrl, onSignInNeeded, Problem, read } from "../api/client";
import { queries, useAsked } from "../api/queries";
import type { EndedSession, Me } from "../api/schema";
import { Dialog } from "../parts/dialog";
import { ProblemNote } from "../parts/problem";
import { noteServerTime } from "./clock";
import { loginPath, providerPath } from "./sign-in";

/** On this machine it may be `weft dev`, whose error must appear and go with the next save. */
const ASK_MS = /^(localhost|127\.\d+\.\d+\.\d+|\[::1\])$/.test(location.hostname) ? 3000 : 30_000;

export function useMe(): Me | undefined {
  return useAsked(["me"], askMe, { refetchMs: ASK_MS }).data;
}

/** How the page was last known to the server. Until it is, nobody has signed in on this page. */
let known: Me | null = null;
let askForSignIn: (() => Promise<void>) | null = null;

async function askMe(signal: AbortSignal): Promise<Me> {
  const me = await requestMe(signal);
  if (isKnown(me)) {
    known = me;
    return me;
  }
  if (askForSignIn === null) return me;
  await askForSignIn();
  return askMe(signal);
}

async function requestMe(signal: AbortSignal): Promise<Me> {
  const sent = Date.now();
  const me = await read(api.GET("/api/v1/me", { signal }));
  const travel = Date.now() - sent;
  noteServerTime(Date.parse(me.now) + travel / 2, Math.max(1, travel));
  return me;
}

/** Whether the server knows who asks: by a session, by a key that a proxy adds, or because it is open to all. */
export function isKnown(me: Me): boolean {
  return me.is_open || me.is_signed_in || me.name !== "";
}

/** Whether the caller has a scope. `admin` has all of them. */
export function may(me: Me | undefined, scope: string): boolean {
  return me !== undefined && (me.scopes.includes(scope) || me.scopes.includes("admin"));
}

/** Sign in with a key. Throws Problem. */
export async function signInWithKey(key: string): Promise<void> {
  const answer = await fetch(apiUrl("/session"), {
    method: "POST",
    headers: { "content-type": "application/json" },
    body: JSON.stringify({ key }),
  });
  if (!answer.ok) throw new Problem((await answer.json()) as Problem["details"], answer.status);
}

/** Sign out here and at the identity provider. */
export async function signOut(): Promise<void> {
  const answer = await fetch(apiUrl("/session"), { method: "DELETE" });
  const { sign_out: elsewhere } = answer.ok ? ((await answer.json()) as EndedSession) : { sign_out: "" };
  queries.clear();
  location.assign(elsewhere || loginPath(""));
}

export function KeyForm({ onDone }: { onDone: () => void }): ReactElement {
  const [error, setError] = useState<unknown>(null);
  const [isSending, setSending] = useState(false);
  const submit = (event: FormEvent<HTMLFormElement>): void => {
    event.preventDefault();
    const key = String(new FormData(event.currentTarget).get("key") ?? "").trim();
    setSending(true);
    signInWithKey(key).then(onDone, setError).finally(() => setSending(false));
  };
  return (
    <form onSubmit={submit}>
      <label htmlFor="key">Key</label>
      <input id="key" name="key" type="password" autoComplete="current-password" required autoFocus />
      <p className="muted">Whoever runs this server makes one for you:<br /><code>weft keys create NAME</code></p>
      {error !== null && <div role="alert">{isRefusal(error) ? <p className="problem">{error.message}</p> : <ProblemNote error={error} />}</div>}
      <div className="buttons"><button className="primary" disabled={isSending}>Sign in</button></div>
    </form>
  );
}

/** Whether the key was refused. The server's hint is for programs that send keys with their requests. */
function isRefusal(error: unknown): error is Problem {
  return error instanceof Problem && error.code === "access.unknown";
}

/**
 * Asks for sign-in when a request was refused, and lets the request go on.
 *
 * Whoever was signed in on this page sees a dialog over it. Whoever comes without a session goes to the sign-in screen.
 */
export function SessionGuard(): ReactElement | null {
  const [resume, setResume] = useState<(() => void) | null>(null);
  useEffect(() => {
    let asked: Promise<void> | null = null;
    askForSignIn = () => {
      if (known === null) location.replace(loginPath(location.href));
      asked ??= new Promise<void>((done) => {
        if (known === null) return;
        setResume(() => () => {
          asked = null;
          setResume(null);
          done();
        });
      });
      return asked;
    };
    onSignInNeeded(askForSignIn);
    return () => {
      askForSignIn = null;
    };
  }, []);
  if (resume === null) return null;
  return (
    <Dialog title="Sign in to go on" onClose={() => undefined}>
      <p>Your session is over. What you typed is still here.</p>
      <KeyForm onDone={resume} />
      {known?.sign_in.includes("oidc") && (
        <div className="row">
          <a href={providerPath("/login")} target="_blank" rel="noreferrer">Sign in with your organisation in a new tab</a>
          <button type="button" onClick={resume}>I have signed in there</button>
        </div>
      )}
    </Dialog>
  );
}
