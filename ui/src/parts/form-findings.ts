/** Where the server's findings belong in a form. Pure. */
import type { FormFinding } from "./form-values";

/** Read the path of a finding: "/lines/0/sku", "lines[0].sku", "$.lines.0.sku" or a list of its parts. */
export function pathParts(path: unknown): (string | number)[] {
  if (Array.isArray(path)) return path.map((part: unknown) => (typeof part === "number" ? part : numbered(String(part))));
  if (typeof path !== "string" || path === "" || path === "$") return [];
  if (path.startsWith("/")) {
    return path.slice(1).split("/").map((part) => numbered(part.replaceAll("~1", "/").replaceAll("~0", "~")));
  }
  return path.replace(/^\$\.?/, "").split(/[.[\]]+/).filter(Boolean).map(numbered);
}

function numbered(part: string): string | number {
  return /^(0|[1-9]\d{0,8})$/.test(part) ? Number(part) : part;
}

/** Return the findings of a refused request that are about a form. `below` is the form's place: "input". */
export function formFindings(findings: readonly unknown[] | undefined, below = ""): FormFinding[] {
  const prefix = pathParts(below);
  return (findings ?? []).flatMap((finding) => {
    if (typeof finding !== "object" || finding === null || !("message" in finding)) return [];
    const path = pathParts("path" in finding ? finding.path : "");
    const isBelow = prefix.every((part, at) => path[at] === part);
    return isBelow ? [{ path: path.slice(prefix.length), message: String(finding.message) }] : [];
  });
}

/** Return the findings for one part of a form, with their paths from there. */
export function findingsBelow(findings: readonly FormFinding[], part: string | number): FormFinding[] {
  return findings.filter(({ path }) => path.length > 0 && String(path[0]) === String(part)).map(({ path, message }) => ({ path: path.slice(1), message }));
}

/** Return the findings that belong to a frame itself: about all of it, or about a name that it does not show. */
export function findingsHere(findings: readonly FormFinding[], shown: readonly (string | number)[]): string[] {
  const names = new Set(shown.map(String));
  return findings.filter(({ path }) => path.length === 0 || !names.has(String(path[0]))).map(said);
}

/** Return a finding as a sentence that says where, if it is about something inside. */
export function said({ path, message }: FormFinding): string {
  return path.length === 0 ? message : `${path.join(".")}: ${message}`;
}
