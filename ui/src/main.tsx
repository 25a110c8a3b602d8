/** Addresses, and the screen of each. */
import "./style/base.css";

import { QueryClientProvider } from "@tanstack/react-query";
import { lazy, StrictMode, Suspense, type ReactElement } from "react";
import { createRoot } from "react-dom/client";

import { queries } from "./api/queries";
import { useRoute, type Route } from "./shell/address";
import { Boundary } from "./shell/boundary";
import { Frame } from "./shell/frame";
import { startKeys } from "./shell/keys";
import { patient } from "./shell/patient";
import { applyTheme } from "./shell/settings";

const Runs = lazy(patient(() => import("./screens/runs")));
const Run = lazy(patient(() => import("./screens/run")));
const Compare = lazy(patient(() => import("./screens/compare")));
const Inbox = lazy(patient(() => import("./screens/inbox")));
const Workflows = lazy(patient(() => import("./screens/workflows")));
const Workflow = lazy(patient(() => import("./screens/workflow")));
const Versions = lazy(patient(() => import("./screens/versions")));
const Goals = lazy(patient(() => import("./screens/goals")));
const Operations = lazy(patient(() => import("./screens/operations")));
const Login = lazy(patient(() => import("./screens/login")));
const Home = lazy(patient(() => import("./screens/home")));
const Unknown = lazy(patient(() => import("./screens/unknown")));

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
  const shown = <Boundary key={route.screen}><Suspense fallback={null}>{screenOf(route)}</Suspense></Boundary>;
  return route.screen === "login" ? shown : <Frame>{shown}</Frame>;
}

applyTheme();
startKeys();
createRoot(document.getElementById("root")!).render(
  <StrictMode>
    <QueryClientProvider client={queries}><Application /></QueryClientProvider>
  </StrictMode>,
);
