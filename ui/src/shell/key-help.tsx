/** The keys that act here. */
import type { ReactElement } from "react";

import { Dialog } from "../parts/dialog";
import { allBindings } from "./keys";

export default function KeyHelp({ onClose }: { onClose: () => void }): ReactElement {
  return (
    <Dialog title="Keys" onClose={onClose}>
      {allBindings().map(({ title, bindings }) => (
        <section key={title}>
          <h3>{title}</h3>
          <table className="keys">
            <tbody>
              {bindings.map(({ keys, does }) => (
                <tr key={keys + does}><th scope="row"><kbd>{keys.replaceAll("+", " ")}</kbd></th><td>{does}</td></tr>
              ))}
            </tbody>
          </table>
        </section>
      ))}
      <div className="buttons"><button type="button" onClick={onClose}>Close</button></div>
    </Dialog>
  );
}
