/**
 * Live frames from the server: a WebSocket, or server-sent events where a socket cannot be opened.
 *
 * A connection that breaks is opened again after the last frame that was seen. A page that was hidden for a minute
 * closes its connection and resumes when it is looked at.
 */
import { serverNow } from "../shell/clock";
import { reportConnection } from "../shell/connection";
import { apiUrl } from "./client";

export type Frame = { id: string; event: string; data: unknown };
type Listener = { onFrame: (frame: Frame) => void; onOpen?: (isAgain: boolean) => void };

const FIRST_RETRY_MS = 500;
const LAST_RETRY_MS = 10_000;
const HIDDEN_MS = 60_000;
const ENDING = new Set(["end", "problem"]);
let count = 0;

/** Follow a live route below the API. Returns a function that stops. */
export function follow(path: string, query: Record<string, string>, listener: Listener): () => void {
  const connection = new LiveConnection(path, query, listener);
  connection.open();
  return () => connection.stop();
}

class LiveConnection {
  private readonly source = `live-${++count}`;
  private close: (() => void) | null = null;
  private after = "";
  private failures = 0;
  private hasOpened = false;
  private useEvents = false;
  private isOver = false;
  private retryTimer: ReturnType<typeof setTimeout> | undefined;
  private hideTimer: ReturnType<typeof setTimeout> | undefined;

  constructor(
    private readonly path: string,
    private readonly query: Record<string, string>,
    private readonly listener: Listener,
  ) {
    document.addEventListener("visibilitychange", this.onVisibility);
    window.addEventListener("online", this.reopen);
  }

  open(): void {
    if (this.isOver || this.close !== null) return;
    if (this.hasOpened) reportConnection(this.source, { state: "catching_up", retryAt: null });
    this.close = this.useEvents ? this.openEvents() : this.openSocket();
  }

  stop(): void {
    this.isOver = true;
    clearTimeout(this.retryTimer);
    clearTimeout(this.hideTimer);
    document.removeEventListener("visibilitychange", this.onVisibility);
    window.removeEventListener("online", this.reopen);
    this.shut();
    reportConnection(this.source, null);
  }

  private address(): URL {
    const url = new URL(apiUrl(this.path), location.href);
    for (const [name, value] of Object.entries(this.query)) url.searchParams.append(name, value);
    if (this.after) url.searchParams.set("after", this.after);
    return url;
  }

  private openSocket(): () => void {
    const url = this.address();
    url.protocol = url.protocol.replace("http", "ws");
    const socket = new WebSocket(url);
    let wasOpen = false;
    socket.onopen = () => {
      wasOpen = true;
      this.opened();
    };
    socket.onmessage = (message) => this.received(JSON.parse(String(message.data)) as Frame);
    socket.onclose = () => {
      if (!wasOpen && !this.hasOpened && this.failures > 0) this.useEvents = true;
      this.lost();
    };
    return () => {
      socket.onclose = null;
      socket.onmessage = null;
      // Closing a socket that is not open yet would be a warning in the console.
      if (socket.readyState === WebSocket.CONNECTING) socket.onopen = () => socket.close();
      else socket.close();
    };
  }

  private openEvents(): () => void {
    const stream = new AbortController();
    void this.readEvents(stream.signal).catch(() => undefined).then(() => {
      if (!stream.signal.aborted) this.lost();
    });
    return () => stream.abort();
  }

  private async readEvents(signal: AbortSignal): Promise<void> {
    const answer = await fetch(this.address(), { headers: { accept: "text/event-stream" }, signal });
    if (answer.status === 204) return this.finish();
    if (!answer.ok || answer.body === null) return;
    this.opened();
    const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
    for (let rest = ""; ; ) {
      const { value, done } = await reader.read();
      if (done) return;
      const parts = (rest + value).split("\n\n");
      rest = parts.pop() ?? "";
      for (const part of parts) {
        const frame = parseEvent(part);
        if (frame) this.received(frame);
      }
    }
  }

  private opened(): void {
    const isAgain = this.hasOpened;
    this.hasOpened = true;
    this.failures = 0;
    reportConnection(this.source, { state: "live", retryAt: null });
    this.listener.onOpen?.(isAgain);
  }

  private received(frame: Frame): void {
    if (frame.id) this.after = frame.id;
    this.listener.onFrame(frame);
    if (ENDING.has(frame.event)) this.finish();
  }

  private finish(): void {
    this.isOver = true;
    this.shut();
    reportConnection(this.source, null);
  }

  private lost(): void {
    this.close = null;
    if (this.isOver || document.visibilityState === "hidden") return;
    const wait = Math.min(LAST_RETRY_MS, FIRST_RETRY_MS * 2 ** this.failures++);
    reportConnection(this.source, { state: "offline", retryAt: serverNow() + wait });
    this.retryTimer = setTimeout(() => this.open(), wait);
  }

  private shut(): void {
    this.close?.();
    this.close = null;
  }

  private readonly reopen = (): void => {
    clearTimeout(this.retryTimer);
    this.open();
  };

  private readonly onVisibility = (): void => {
    clearTimeout(this.hideTimer);
    if (document.visibilityState === "visible") this.reopen();
    else this.hideTimer = setTimeout(() => this.shut(), HIDDEN_MS);
  };
}

/** Read one server-sent event. Returns null for a comment. */
export function parseEvent(text: string): Frame | null {
  const fields: Record<string, string> = {};
  for (const line of text.split("\n")) {
    const colon = line.indexOf(":");
    if (colon > 0) fields[line.slice(0, colon)] = line.slice(colon + 1).trimStart();
  }
  if (fields["data"] === undefined) return null;
  return { id: fields["id"] ?? "", event: fields["event"] ?? "message", data: JSON.parse(fields["data"]) as unknown };
}
