/** Sending a form: once, however often its button is pressed, and again after it was refused. */
import { useRef, useState } from "react";

export type Sending = { error: unknown; isSending: boolean; send: (act: () => Promise<void>) => void };

export function useSending(): Sending {
  const isUnderWay = useRef(false);
  const [isSending, setSending] = useState(false);
  const [error, setError] = useState<unknown>(null);
  const send = (act: () => Promise<void>): void => {
    if (isUnderWay.current) return;
    isUnderWay.current = true;
    setSending(true);
    setError(null);
    act().catch(setError).finally(() => {
      isUnderWay.current = false;
      setSending(false);
    });
  };
  return { error, isSending, send };
}
