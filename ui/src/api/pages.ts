/** Lists that come in pages: each page is asked for when somebody wants more. */
import { useInfiniteQuery } from "@tanstack/react-query";

type Page<T> = { rows: T[]; cursor: string | null };
type Pages<T> = { rows: T[] | undefined; error: unknown; retry: () => void; more: (() => void) | undefined };

export function usePages<T>(key: readonly unknown[], ask: (cursor: string | undefined, signal: AbortSignal) => Promise<Page<T>>, refetchMs = 5000): Pages<T> {
  const asked = useInfiniteQuery({
    queryKey: key,
    queryFn: ({ pageParam, signal }) => ask(pageParam, signal),
    initialPageParam: undefined as string | undefined,
    getNextPageParam: (last) => last.cursor ?? undefined,
    refetchInterval: refetchMs,
  });
  return {
    rows: asked.data?.pages.flatMap((page) => page.rows),
    error: asked.error,
    retry: () => void asked.refetch(),
    more: asked.hasNextPage ? () => void asked.fetchNextPage() : undefined,
  };
}
