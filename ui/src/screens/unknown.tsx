/** An address that no screen has. */
import type { ReactElement } from "react";

import { Link } from "../shell/link";

export default function Unknown({ path }: { path: string }): ReactElement {
  return (
    <div className="empty">
      <h1>There is no screen at this address</h1>
      <p className="mono">{path}</p>
      <Link to="/runs">Runs</Link>
    </div>
  );
}
