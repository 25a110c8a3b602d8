/** The dialog of the action that was asked for. */
import type { ReactElement } from "react";

import type { RunDetail } from "../../api/schema";
import { CancelDialog, RemarkDialog, RetryDialog, SendDialog, type Asked } from "./dialogs";
import { ForkDialog } from "./fork";

export function RunDialog({ run, asked, onClose }: { run: RunDetail; asked: Asked; onClose: () => void }): ReactElement {
  switch (asked.action) {
    case "pause":
    case "resume": return <RemarkDialog run={run} action={asked.action} onClose={onClose} />;
    case "cancel": return <CancelDialog run={run} onClose={onClose} />;
    case "retry": return <RetryDialog run={run} place={asked.place} onClose={onClose} />;
    case "send": return <SendDialog run={run} names={asked.names} onClose={onClose} />;
    case "fork": return <ForkDialog run={run} before={asked.before} at={asked.at} onClose={onClose} />;
    default: return asked satisfies never;
  }
}
