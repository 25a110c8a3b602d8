/** Parts of the page that are loaded when they are first needed, also if the server is away just then. */
import { basePath } from "./address";
import { serverNow } from "./clock";
import { reportConnection } from "./connection";

const RETRY_MS = 1000;
/** How often a server that can be reached may fail to give a part before it is said to lack it. */
const REFUSALS_MAX = 3;
const SOURCE = "parts of the page";

/** Return a way to load a part that waits while the server cannot be reached. It throws if the server lacks the part. */
export function patient<T>(load: () => Promise<T>): () => Promise<T> {
  return async () => {
    let next = load;
    for (let tries = 1, refusals = 0; ; tries++) {
      try {
        return await next();
      } catch (error) {
        next = again(load, error, tries);
        if ((await isReachable()) && ++refusals === REFUSALS_MAX) throw error;
        await new Promise((resolve) => setTimeout(resolve, refusals > 1 ? RETRY_MS : 0));
        await untilReachable();
        await loadStylesAgain();
      }
    }
  };
}

/** Return a way to load a part that has failed. Chromium never asks twice for a module of one address. */
function again<T>(load: () => Promise<T>, error: unknown, tries: number): () => Promise<T> {
  const address = /https?:[^\s?]+\.js/.exec(String(error))?.[0];
  return address === undefined ? load : () => import(/* @vite-ignore */ `${address}?again=${String(tries)}`) as Promise<T>;
}

async function untilReachable(): Promise<void> {
  while (!(await isReachable())) {
    reportConnection(SOURCE, { state: "offline", retryAt: serverNow() + RETRY_MS });
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
  reportConnection(SOURCE, null);
}

async function isReachable(): Promise<boolean> {
  try {
    await fetch(`${basePath()}/healthz`, { cache: "no-store" });
    return true;
  } catch {
    return false;
  }
}

/** Load those styles again that failed: whoever loads a part asks for its styles only once. */
async function loadStylesAgain(): Promise<void> {
  const failed = [...document.querySelectorAll<HTMLLinkElement>('link[rel="stylesheet"]')].filter((link) => link.sheet === null);
  await Promise.all(failed.map((link) => new Promise<void>((resolve) => {
    const again = link.cloneNode() as HTMLLinkElement;
    again.onload = again.onerror = () => resolve();
    link.replaceWith(again);
  })));
}
