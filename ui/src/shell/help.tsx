/** The page of an error code: the text of `weft help CODE`. */
import type { ReactElement } from "react";

import { apiUrl } from "../api/client";
import { useAsked } from "../api/queries";
import { Dialog } from "../parts/dialog";

type Page = { code: string; text: string };

async function askForHelp(code: string, signal: AbortSignal): Promise<Page> {
  const answer = await fetch(apiUrl("/help/" + encodeURIComponent(code)), { signal });
  if (!answer.ok) throw new Error(`There is no page for ${code}. In a terminal: weft help ${code}`);
  return (await answer.json()) as Page;
}

export default function HelpDialog({ code, onClose }: { code: string; onClose: () => void }): ReactElement {
  const page = useAsked(["help", code], (signal) => askForHelp(code, signal));
  return (
    <Dialog title={code} onClose={onClose}>
      {page.data ? <pre>{page.data.text}</pre> : <p>{page.error ? page.error.message : "…"}</p>}
      <div className="buttons"><button type="button" onClick={onClose}>Close</button></div>
    </Dialog>
  );
}
