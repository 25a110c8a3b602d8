/**
 * Parts of the page, loaded when they are first needed, also if the server is away just then.
 *
 * A browser asks for a module once: one that could not be loaded stays missing until the page is loaded again, under
 * whichever other module it is needed. So all files of a part are fetched first, as often as it takes, and imported
 * from the browser's cache. The build calls `loadPatiently` around each `import()`.
 */
import { serverNow } from "./clock";
import { reportConnection } from "./connection";

const RETRY_MS = 1000;
const SOURCE = "parts of the page";

/** The files that the browser has, or is getting, by their addresses. */
const fetched = new Map<string, Promise<void>>();

/** Import a module after all its files are here. They are relative to the importer. Throws if the server lacks one. */
export async function loadPatiently<T>(load: () => Promise<T>, files: string[] = [], importer = import.meta.url): Promise<T> {
  const addresses = files.map((file) => new URL(file, importer).href);
  await Promise.all(addresses.map(haveFile));
  return await load();
}

function haveFile(address: string): Promise<void> {
  if (fetched.size === 0) for (const file of filesOfPage()) fetched.set(file, Promise.resolve());
  const known = fetched.get(address);
  if (known !== undefined) return known;
  const begun = fetchPatiently(address).then(() => address.endsWith(".css") ? addStyles(address) : undefined);
  fetched.set(address, begun);
  begun.catch(() => fetched.delete(address));
  return begun;
}

/** Return the addresses of what the page itself names: its browser has them, or the page would not be here. */
function filesOfPage(): string[] {
  const scripts = [...document.querySelectorAll<HTMLScriptElement>("script[src]")].map((script) => script.src);
  return [...scripts, ...[...document.querySelectorAll<HTMLLinkElement>("link[href]")].map((link) => link.href)];
}

/** Fetch a file into the browser's cache, where it stays: its name changes with its content. */
async function fetchPatiently(address: string): Promise<void> {
  for (;;) {
    const status = await fetchOnce(address);
    if (status === 200) return reportConnection(SOURCE, null);
    if (status !== null && status < 500) throw new Error(`The server has no ${address} (${status}). Reload the page.`);
    reportConnection(SOURCE, { state: "offline", retryAt: serverNow() + RETRY_MS });
    await new Promise((resolve) => setTimeout(resolve, RETRY_MS));
  }
}

/** Fetch a file to its end. Returns the status of the answer, or null if the server is away. */
async function fetchOnce(address: string): Promise<number | null> {
  try {
    const answer = await fetch(address);
    await answer.arrayBuffer();
    return answer.status;
  } catch {
    return null;
  }
}

/** Add a stylesheet to the page, and wait until it applies. */
async function addStyles(address: string): Promise<void> {
  const link = document.createElement("link");
  link.rel = "stylesheet";
  link.href = address;
  await new Promise<unknown>((resolve) => {
    link.onload = link.onerror = resolve;
    document.head.append(link);
  });
}
