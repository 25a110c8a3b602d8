/** The menu of saved views, and the dialog that saves one. */
import { useId, useRef, useState, type FormEvent, type ReactElement } from "react";

import { Dialog } from "../../parts/dialog";
import { ProblemNote } from "../../parts/problem";
import { navigate } from "../../shell/address";
import { Link } from "../../shell/link";
import { toast } from "../../shell/notices";
import { useViews, type View, type Views } from "./views";

export function ViewsMenu({ query, mayShare }: { query: string; mayShare: boolean }): ReactElement {
  const views = useViews();
  const [isSaving, setSaving] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const id = useId();
  const popover = useRef<HTMLDivElement>(null);
  const here = views.views.find((view) => view.query === query);
  const remove = (view: View): void => {
    setError(null);
    views.remove(view).catch(setError);
  };
  return (
    <>
      <button type="button" className="plain anchor-views" popoverTarget={id}>{here?.name ?? "Views"} ▾</button>
      <div id={id} ref={popover} popover="auto" className="popup at-views">
        <ul className="menu" aria-label="Views">
          {views.views.map((view) => (
            <li key={view.from + view.name} className="row nowrap">
              <Link to={"/runs?" + view.query} className="grow cut" aria-current={view === here ? "true" : undefined} onClick={() => popover.current?.hidePopover()}><bdi>{view.name}</bdi></Link>
              {view.from !== "weft" && <span className="muted">{view.from === "browser" ? "this browser" : "everybody"}</span>}
              {(view.from === "browser" || (view.from === "everybody" && mayShare)) && (
                <button type="button" className="plain" aria-label={`Delete the view ${view.name}`} onClick={() => remove(view)}>Delete</button>
              )}
            </li>
          ))}
        </ul>
        {(error ?? views.error) !== null && <ProblemNote error={error ?? views.error} />}
        <button type="button" disabled={query === ""} title={query === "" ? "Filter the list first" : undefined} onClick={() => { popover.current?.hidePopover(); setSaving(true); }}>Save this view…</button>
      </div>
      {isSaving && <SaveView views={views} query={query} mayShare={mayShare} onClose={() => setSaving(false)} />}
    </>
  );
}

function SaveView({ views, query, mayShare, onClose }: { views: Views; query: string; mayShare: boolean; onClose: () => void }): ReactElement {
  const [name, setName] = useState("");
  const [from, setFrom] = useState<"browser" | "everybody">("browser");
  const [error, setError] = useState<unknown>(null);
  const replaced = views.views.find((view) => view.name === name.trim() && view.from === from);
  const submit = (event: FormEvent): void => {
    event.preventDefault();
    views.save({ name: name.trim(), query, from }).then(() => {
      toast("Saved");
      onClose();
      navigate("/runs?" + query);
    }, setError);
  };
  return (
    <Dialog title="Save this view" onClose={onClose}>
      <form onSubmit={submit}>
        <label className="column">Name<input autoFocus required maxLength={100} value={name} onChange={(event) => setName(event.target.value)} /></label>
        <fieldset className="field radios">
          <legend>For</legend>
          <label className="radio"><input type="radio" name="for" checked={from === "browser"} onChange={() => setFrom("browser")} /> this browser</label>
          <label className="radio"><input type="radio" name="for" checked={from === "everybody"} disabled={!mayShare} onChange={() => setFrom("everybody")} /> everybody</label>
        </fieldset>
        <p className="muted mono">{query}</p>
        {replaced && <p>It replaces the view of this name.</p>}
        {error !== null && <ProblemNote error={error} />}
        <div className="buttons">
          <button type="button" onClick={onClose}>Back</button>
          <button className="primary" disabled={name.trim() === ""}>Save</button>
        </div>
      </form>
    </Dialog>
  );
}
