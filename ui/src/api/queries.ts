/** Reading from the server with React Query: one place for retries, and for what a failed request does. */
import { QueryClient, useQuery, type UseQueryResult } from "@tanstack/react-query";

import { serverNow } from "../shell/clock";
import { reportConnection } from "../shell/connection";
import { Problem, Unreachable } from "./client";

const RETRY_MS = 4000;

export const queries = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 2000,
      gcTime: 5 * 60_000,
      refetchOnWindowFocus: true,
      retry: (failures, error) => !(error instanceof Problem) || (error.status === 503 && failures < 5),
      retryDelay: (failures) => Math.min(RETRY_MS, 300 * 2 ** failures),
    },
    mutations: { retry: false },
  },
});

type Options = { enabled?: boolean; refetchMs?: number; keepPrevious?: boolean };

/** Ask for something that is shown. The key names it; what was shown stays while it is asked for again. */
export function useAsked<T>(key: readonly unknown[], ask: (signal: AbortSignal) => Promise<T>, options: Options = {}): UseQueryResult<T> {
  return useQuery<T>({
    queryKey: key,
    queryFn: async ({ signal }) => {
      const source = "asked:" + JSON.stringify(key);
      try {
        const found = await ask(signal);
        reportConnection(source, null);
        return found;
      } catch (error) {
        if (error instanceof Unreachable) reportConnection(source, { state: "offline", retryAt: serverNow() + RETRY_MS });
        throw error;
      }
    },
    enabled: options.enabled ?? true,
    refetchInterval: options.refetchMs ?? false,
    placeholderData: options.keepPrevious === false ? undefined : (previous: unknown) => previous as never,
  });
}
