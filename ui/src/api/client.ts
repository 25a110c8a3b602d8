/** Requests to the server that served this page. Every answer is data or a problem with a code and a hint. */
import createClient, { type Middleware } from "openapi-fetch";

import { basePath } from "../shell/address";
import { noteServerTime } from "../shell/clock";
import type { ProblemDetails, paths } from "./schema";

/** A problem that the server described, or the fact that it could not be reached. */
export class Problem extends Error {
  constructor(
    readonly details: ProblemDetails,
    readonly status: number,
  ) {
    super(details.detail || details.title);
  }
  get code(): string {
    return this.details.code;
  }
  get hint(): string {
    return this.details.hint ?? "";
  }
  /** Return the same problem without what is shown elsewhere: at the fields of a form. */
  withoutFindings(): Problem {
    return new Problem({ ...this.details, findings: [] }, this.status);
  }
}

/** The server did not answer. */
export class Unreachable extends Error {}

type SignIn = () => Promise<void>;
let signIn: SignIn | null = null;

/** Say what asks for sign-in when a session has expired. The request is then sent again. */
export function onSignInNeeded(ask: SignIn): void {
  signIn = ask;
}

const repeatable = new WeakMap<Request, Request>();

const session: Middleware = {
  onRequest({ request }) {
    repeatable.set(request, request.clone());
    return undefined;
  },
  async onResponse({ request, response }) {
    const date = response.headers.get("date");
    if (date) noteServerTime(Date.parse(date), 1000);
    if (response.status !== 401 || signIn === null) return undefined;
    await signIn();
    const again = repeatable.get(request);
    return again ? fetch(again) : undefined;
  },
};

export const api = createClient<paths>({ baseUrl: basePath(), credentials: "same-origin" });
api.use(session);

type Answer<T> = { data?: T; error?: unknown; response: Response };

/** Return the data of an answer. Throws Problem or Unreachable. */
export async function read<T>(asked: Promise<Answer<T>>): Promise<T> {
  let answer: Answer<T>;
  try {
    answer = await asked;
  } catch (error) {
    if (error instanceof DOMException && error.name === "AbortError") throw error;
    throw new Unreachable("The server did not answer.");
  }
  if (answer.error !== undefined || !answer.response.ok) throw new Problem(asDetails(answer), answer.response.status);
  return answer.data as T;
}

function asDetails(answer: Answer<unknown>): ProblemDetails {
  const found = answer.error;
  if (typeof found === "object" && found !== null && "code" in found) return found as ProblemDetails;
  const { status, statusText } = answer.response;
  return { type: "about:blank", title: statusText || "Error", status, detail: `The server answered ${status}.`, code: "" };
}

/** Return the address of something below the API, for downloads and live connections. */
export function apiUrl(path: string): string {
  return basePath() + "/api/v1" + path;
}
