/** Thin lines below the frame: what everybody who looks should know. */
import type { ReactElement } from "react";

import { durationText } from "../parts/times";
import { useClockOffset } from "./clock";
import { useMe } from "./session";

const CLOCK_OFF_MS = 2000;
let builtAs = "";

/** Whether the server has newer files than this page was made of: what it said first is what the page is. */
function isOld(build: string | undefined): boolean {
  builtAs ||= build ?? "";
  return build !== undefined && build !== "" && build !== builtAs;
}

export function Warnings(): ReactElement | null {
  const me = useMe();
  const offset = useClockOffset();
  const lines: ReactElement[] = (me?.warnings ?? []).map(({ kind, text }) => <p key={kind}>{text}</p>);
  if (me?.dev_error) lines.push(<div key="dev">The code that was saved last is not running: <pre>{me.dev_error}</pre></div>);
  if (me && Math.abs(offset) > CLOCK_OFF_MS) {
    lines.push(<p key="clock">This machine's clock is {durationText(Math.abs(offset))} {offset > 0 ? "behind" : "ahead of"} the server's. All ages use the server's time.</p>);
  }
  if (isOld(me?.build)) {
    lines.push(<p key="old">This page is older than the server. <button type="button" className="plain" onClick={() => location.reload()}>Reload</button></p>);
  }
  return lines.length === 0 ? null : <div className="warning" role="status">{lines}</div>;
}
