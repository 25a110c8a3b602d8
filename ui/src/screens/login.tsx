/** Sign in, where the server is closed. */
import "./login.css";

import { useEffect, type ReactElement } from "react";

import { basePath, useChosen } from "../shell/address";
import { isKnown, KeyForm, useMe } from "../shell/session";
import { failureText, providerPath, safeNext } from "../shell/sign-in";

export default function Login(): ReactElement {
  const chosen = useChosen();
  const me = useMe();
  const next = safeNext(chosen.get("next") ?? "");
  const failed = chosen.get("failed");
  const isIn = me !== undefined && isKnown(me);
  useEffect(() => {
    document.title = "Sign in · Weft";
  }, []);
  useEffect(() => {
    if (isIn) location.replace(basePath() + next);
  }, [isIn, next]);
  return (
    <main id="main" className="login">
      <h1>Sign in to Weft</h1>
      {failed && <p role="alert" className="warning">{failureText(failed)}</p>}
      {me?.sign_in.includes("oidc") && <a className="button" href={providerPath(next)}>Sign in with your organisation</a>}
      {me?.sign_in.includes("key") && <KeyForm onDone={() => location.replace(basePath() + next)} />}
    </main>
  );
}
