/** The tags of a workflow: which version each names, and moving one. */
import { useState, type ReactElement } from "react";

import { api, read } from "../../api/client";
import { queries, useAsked } from "../../api/queries";
import type { TaggedVersion } from "../../api/schema";
import { ActionDialog } from "../../parts/action-dialog";
import { weftCommand } from "../../parts/command";
import { Age } from "../../parts/time";
import { may, useMe } from "../../shell/session";

type Props = { name: string; version: string; tags: TaggedVersion[] };

export function Tags({ name, version, tags }: Props): ReactElement {
  const [moving, setMoving] = useState<string | null>(null);
  const [opened, setOpened] = useState<string | null>(null);
  const mayMove = may(useMe(), "operate");
  return (
    <section aria-labelledby="tags-title">
      <h2 id="tags-title">Tags</h2>
      {tags.length === 0 && <p className="muted">No tag. A tag such as live names the version that new runs get.</p>}
      <ul className="plain-list">
        {tags.map((one) => (
          <li key={one.tag}>
            <div className="row">
              <button type="button" className="plain" aria-expanded={opened === one.tag} onClick={() => setOpened(opened === one.tag ? null : one.tag)}>@{one.tag}</button>
              <span className="mono">{one.version.slice(0, 12)}</span>
              {mayMove && one.version !== version && <button type="button" onClick={() => setMoving(one.tag)}>Move here</button>}
            </div>
            {opened === one.tag && <Moves name={name} tag={one.tag} />}
          </li>
        ))}
      </ul>
      {mayMove && <span><button type="button" onClick={() => setMoving("")}>Tag this version</button></span>}
      {moving !== null && <MoveDialog name={name} version={version} tag={moving} onClose={() => setMoving(null)} />}
    </section>
  );
}

function Moves({ name, tag }: { name: string; tag: string }): ReactElement {
  const moves = useAsked(["workflow", name, "tag", tag], (signal) => read(api.GET("/api/v1/workflows/{name}/tags/{tag}", { params: { path: { name, tag } }, signal })));
  return (
    <ol reversed>
      {moves.data?.history.map((move) => <li key={move.number}><span className="mono">{move.after.slice(0, 8)}</span> by {move.by || "somebody"}, <Age at={move.at} /> {move.reason && `“${move.reason}”`}</li>)}
    </ol>
  );
}

function MoveDialog({ name, version, tag, onClose }: { name: string; version: string; tag: string; onClose: () => void }): ReactElement {
  const [typed, setTyped] = useState(tag);
  const act = async (reason: string): Promise<void> => {
    await read(api.PUT("/api/v1/workflows/{name}/tags/{tag}", { params: { path: { name, tag: typed } }, body: { version, reason } }));
    await queries.invalidateQueries({ queryKey: ["workflow", name] });
  };
  return (
    <ActionDialog title={tag ? `Move @${tag}` : "Tag this version"} verb={tag ? "Move" : "Tag"} said={`@${typed} names ${version.slice(0, 8)}`} onClose={onClose} act={act}
      command={(reason) => weftCommand("workflows", ["tag", name, typed, version], [["--reason", reason]])}>
      <p>New runs that name the tag get version <code>{version.slice(0, 12)}</code>. Open runs stay on theirs.</p>
      {!tag && <label className="column">Tag <input required value={typed} placeholder="live" onChange={(event) => setTyped(event.target.value)} /></label>}
    </ActionDialog>
  );
}
