/**
 * Components whose code is loaded when they are first shown.
 *
 * React's own way would make people wait: what was suspended is revealed only 300 ms after its fallback, however soon it is there.
 */
import { useEffect, useState, type ComponentType, type ReactElement, type ReactNode } from "react";

type Part<P> = { default: ComponentType<P> };
type Found<P> = { Shown: ComponentType<P> } | { error: unknown } | null;

/** Return a component that shows `before` until its code is there. If the server lacks the code, it throws what said so. */
export function part<P extends object>(load: () => Promise<Part<P>>, before: ReactNode = null): (props: P) => ReactElement {
  let loading: Promise<Part<P>> | null = null;
  let loaded: ComponentType<P> | null = null;
  return function Later(props) {
    const [found, setFound] = useState<Found<P>>(() => loaded && { Shown: loaded });
    if (found === null) loading ??= load();
    useEffect(() => {
      if (found !== null || loading === null) return undefined;
      let isGone = false;
      loading.then(({ default: it }) => {
        loaded = it;
        if (!isGone) setFound({ Shown: it });
      }, (error: unknown) => {
        loading = null; // asked for again when it is shown again
        if (!isGone) setFound({ error });
      });
      return () => { isGone = true; };
    }, [found]);
    if (found !== null && "error" in found) throw found.error;
    return found === null ? <>{before}</> : <found.Shown {...props} />;
  };
}
