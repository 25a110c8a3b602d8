/** The line around every screen: screens, open questions, palette, connection, time zone, who I am. */
import { useState, type ReactElement, type ReactNode } from "react";

import { zoneText } from "../parts/times";
import { navigate, pathTo, useRoute } from "./address";
import { serverNow, useNow } from "./clock";
import { useConnection } from "./connection";
import { Finder } from "./finder";
import { useKeys, type Binding } from "./keys";
import { Link } from "./link";
import { Notices } from "./notices";
import { part } from "./part";
import { useQuestionCount } from "./questions";
import { SessionGuard, signOut, useMe } from "./session";
import { changeSettings, useSettings } from "./settings";
import { Warnings } from "./warnings";

const KeyHelp = part(() => import("./key-help"));

const SCREENS = [
  { screen: "runs", title: "Runs", key: "g r" },
  { screen: "inbox", title: "Inbox", key: "g i" },
  { screen: "workflows", title: "Workflows", key: "g w" },
  { screen: "goals", title: "Goals", key: "g g" },
  { screen: "operations", title: "Operations", key: "g o" },
] as const;

const WITHIN: Record<string, string> = { run: "runs", diff: "runs", workflow: "workflows", versions: "workflows" };

export function Frame({ children }: { children: ReactNode }): ReactElement {
  const [open, setOpen] = useState<"palette" | "keys" | null>(null);
  const goTo: Binding[] = SCREENS.map(({ screen, title, key }) => ({
    keys: key, does: title, run: () => navigate(pathTo(screen)),
  }));
  useKeys("Everywhere", [
    ...goTo,
    { keys: "Ctrl+k", does: "Find anything", run: () => setOpen("palette") },
    { keys: "?", does: "Show the keys", run: () => setOpen("keys") },
  ]);
  return (
    <>
      <a className="skip" href="#main" onClick={(event) => {
        event.preventDefault();
        document.getElementById("main")?.focus();
      }}>Skip to the content</a>
      <Bar onFind={() => setOpen("palette")} />
      <Warnings />
      <main id="main" tabIndex={-1}>{children}</main>
      <SessionGuard />
      <Notices />
      {open === "palette" && <Finder onClose={() => setOpen(null)} />}
      {open === "keys" && <KeyHelp onClose={() => setOpen(null)} />}
    </>
  );
}

function Bar({ onFind }: { onFind: () => void }): ReactElement {
  const route = useRoute();
  const here = WITHIN[route.screen] ?? route.screen;
  const count = useQuestionCount();
  return (
    <header className="frame">
      <Link to="/runs" className="brand">weft</Link>
      <nav aria-label="Screens">
        {SCREENS.map(({ screen, title }) => (
          <Link key={screen} to={pathTo(screen)} aria-current={here === screen ? "page" : undefined}>
            {title}
            {screen === "inbox" && count && <span className="count"><span className="unseen">, open questions: </span>{count}</span>}
          </Link>
        ))}
      </nav>
      <span className="grow" />
      <button type="button" onClick={onFind}>Find <kbd className="muted wide-only">Ctrl K</kbd></button>
      <ConnectionState />
      <Zone />
      <Person />
    </header>
  );
}

function ConnectionState(): ReactElement {
  const { state, retryAt } = useConnection();
  const now = useNow(1000);
  if (state === "live") return <span className="status"><span className="sign mark-done" aria-hidden="true">●</span> live</span>;
  if (state === "catching_up") return <span className="status"><span className="sign mark-waiting" aria-hidden="true">◐</span> catching up</span>;
  const wait = retryAt === null ? 0 : Math.max(0, Math.ceil((retryAt - now) / 1000));
  return <span className="status" role="status"><span className="sign mark-failed" aria-hidden="true">✗</span> offline{wait > 0 ? `, again in ${wait} s` : ""}</span>;
}

function Zone(): ReactElement {
  const { zone } = useSettings();
  const other = zone === "local" ? "utc" : "local";
  return (
    <button type="button" className="plain" title="Change between local time and UTC" onClick={() => changeSettings({ zone: other })}>
      {zoneText(zone, serverNow())}
    </button>
  );
}

function Person(): ReactElement {
  const me = useMe();
  const { theme, singleKeys } = useSettings();
  const isSignedIn = me?.is_signed_in ?? false;
  return (
    <>
      <button type="button" className="plain" popoverTarget="person">{me?.name || "anyone"} ▾</button>
      <div id="person" popover="auto" className="person">
        <div className="column">
          <span className="muted">{me?.is_open ? "This server is open: programs on its machine may do everything." : `May ${me?.scopes.join(", ") || "nothing"}`}</span>
          {me?.tenant && <span>Tenant <code>{me.tenant}</code></span>}
          <label className="row">Theme
            <select value={theme} onChange={(event) => changeSettings({ theme: event.target.value as typeof theme })}>
              <option value="system">as the system</option>
              <option value="light">light</option>
              <option value="dark">dark</option>
            </select>
          </label>
          <label className="row">
            <input type="checkbox" checked={singleKeys} onChange={(event) => changeSettings({ singleKeys: event.target.checked })} /> Single keys act
          </label>
          <span className="muted">weft {me?.version} · {me?.store}</span>
          {isSignedIn && <button type="button" onClick={() => void signOut()}>Sign out</button>}
        </div>
      </div>
    </>
  );
}
