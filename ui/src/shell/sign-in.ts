/** Where to sign in, and where to go afterwards: always a path below the base of this page. */
import { basePath } from "./address";

/** Return the path below the base of an address of this page, with what is chosen in it; "" if it is elsewhere. */
export function pathBelow(base: string, address: string): string {
  try {
    const url = new URL(address);
    if (!url.pathname.startsWith(base + "/")) return "";
    return url.pathname.slice(base.length) + url.search + url.hash;
  } catch {
    return "";
  }
}

/** A path below the base. It has no "." and ".." between slashes, and no characters that cannot be seen. */
const SAFE = /^(?!\/[/\\])(?![^?#]*\/(\.|%2e){1,2}([/?#]|$))\/[^\\\s\p{Cc}]*$/iu;

/** Return a path below the base, or "/" for anything that could lead elsewhere. */
export function safeNext(next: string): string {
  return SAFE.test(next) ? next : "/";
}

/** Return the address of the sign-in screen that leads back to an address of this page. */
export function loginPath(address: string): string {
  const next = safeNext(pathBelow(basePath(), address));
  return basePath() + "/login" + (next === "/" ? "" : "?next=" + encodeURIComponent(next));
}

/** Return the address that leads to the identity provider and back to a path below the base. */
export function providerPath(next: string): string {
  return basePath() + "/api/v1/session/oidc?next=" + encodeURIComponent(safeNext(next));
}

const FAILURES: Record<string, string> = {
  "access.unknown": "You were not signed in: the sign-in was refused, took too long, or was begun in another browser.",
  "access.provider": "The identity provider could not be used. Try again later, or sign in with a key.",
  "access.not_allowed": "You are known, but you may not use this server. Ask whoever runs it.",
};

/** Say why signing in elsewhere failed. */
export function failureText(code: string): string {
  return FAILURES[code] ?? `Signing in failed: ${code}. Try again.`;
}
