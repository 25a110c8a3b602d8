/** Addresses, and the screen of each. */
import "./style/base.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode, type ReactElement } from "react";
import { createRoot } from "react-dom/client";

import { queries } from "./api/queries";
import { useRoute, type Route } from "./shell/address";
import { Boundary } from "./shell/boundary";
import { Frame } from "./shell/frame";
import { startKeys } from "./shell/keys";
import { part } from "./shell/part";
import { applyTheme } from "./shell/settings";

const Runs = part(() => import("./screens/runs"));
const Run = part(() => import("./screens/run"));
const Compare = part(() => import("./screens/compare"));
const Inbox = part(() => import("./screens/inbox"));
const Workflows = part(() => import("./screens/workflows"));
const Workflow = part(() => import("./screens/workflow"));
const Versions = part(() => import("./screens/versions"));
const Goals = part(() => import("./screens/goals"));
const Operations = part(() => import("./screens/operations"));
const Login = part(() => import("./screens/login"));
const Home = part(() => import("./screens/home"));
const Unknown = part(() => import("./screens/unknown"));

function screenOf(route: Route): ReactElement {
  switch (route.screen) {
    case "home": return <Home />;
    case "runs": return <Runs />;
    case "run": return <Run key={route.id} id={route.id} />;
    case "diff": return <Compare a={route.id} b={route.other} />;
    case "inbox": return <Inbox id={route.id} />;
    case "workflows": return <Workflows />;
    case "workflow": return <Workflow key={route.name} name={route.name} />;
    case "versions": return <Versions name={route.name} a={route.a} b={route.b} />;
    case "goals": return <Goals />;
    case "operations": return <Operations />;
    case "login": return <Login />;
    case "unknown": return <Unknown path={route.path} />;
    default: return route satisfies never;
  }
}

function Application(): ReactElement {
  const route = useRoute();
  const shown = <Boundary key={route.screen}>{screenOf(route)}</Boundary>;
  return route.screen === "login" ? shown : <Frame>{shown}</Frame>;
}

applyTheme();
startKeys();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}><Application /></QueryClientProvider>
  </StrictMode>,
);
