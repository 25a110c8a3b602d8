/** The versions that a list can be filtered by. Pure. */

const SHORT = 16;

/** Return an option for each version. Runs know their version, not the tags that name it today: a tag is in the label. */
export function versionOptions(versions: readonly { version: string; tags: readonly string[] }[]): { value: string; label: string }[] {
  return versions.map(({ version, tags }) => ({ value: version, label: [...tags.map((tag) => "@" + tag), version.slice(0, SHORT)].join(" · ") }));
}
