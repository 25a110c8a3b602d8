/** Operations: health, hosts, queues, dead letters, schedules, steps, keys and jobs, one section each. */
import "./operations.css";

import { useEffect, type ReactElement } from "react";

import { useHash } from "../shell/address";
import { useTitle } from "../shell/questions";
import { may, useMe } from "../shell/session";
import { DeadLetters } from "./operations/dead-letters";
import { Health } from "./operations/health";
import { Hosts } from "./operations/hosts";
import { Jobs } from "./operations/jobs";
import { Keys } from "./operations/keys";
import { Queues } from "./operations/queues";
import { Schedules } from "./operations/schedules";
import { Steps } from "./operations/steps";

/** Sections of all tenants together are only for callers without a tenant. */
const SECTIONS = [
  { name: "health", title: "Health", scope: "read", isOfAll: true, Part: Health },
  { name: "hosts", title: "Hosts", scope: "read", isOfAll: true, Part: Hosts },
  { name: "queues", title: "Queues", scope: "read", isOfAll: true, Part: Queues },
  { name: "dead-letters", title: "Dead letters", scope: "read", isOfAll: false, Part: DeadLetters },
  { name: "schedules", title: "Schedules", scope: "read", isOfAll: false, Part: Schedules },
  { name: "steps", title: "Steps", scope: "read", isOfAll: false, Part: Steps },
  { name: "keys", title: "Keys", scope: "admin", isOfAll: true, Part: Keys },
  { name: "jobs", title: "Jobs", scope: "read", isOfAll: false, Part: Jobs },
] as const;

export default function Operations(): ReactElement {
  const me = useMe();
  const hash = useHash();
  useTitle("Operations");
  useEffect(() => {
    if (hash) document.getElementById(hash)?.scrollIntoView();
  }, [hash]);
  const shown = SECTIONS.filter(({ scope, isOfAll }) => me !== undefined && may(me, scope) && !(isOfAll && me.tenant));
  return (
    <div className="operations">
      <h1>Operations</h1>
      <nav aria-label="Sections" className="row">
        {shown.map(({ name, title }) => (
          <a key={name} className="chip" href={`${location.pathname}#${name}`} aria-current={hash === name ? "true" : undefined}>{title}</a>
        ))}
      </nav>
      {shown.map(({ name, title, Part }) => (
        <section key={name} id={name} aria-labelledby={name + "-title"}>
          <h2 id={name + "-title"}>{title}</h2>
          <Part />
        </section>
      ))}
    </div>
  );
}
