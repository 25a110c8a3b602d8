/** A link to another screen. With a modifier key it opens as every link does. */
import type { AnchorHTMLAttributes, MouseEvent, ReactElement } from "react";

import { basePath, navigate } from "./address";

type Props = Omit<AnchorHTMLAttributes<HTMLAnchorElement>, "href"> & { to: string };

export function Link({ to, onClick, ...rest }: Props): ReactElement {
  const follow = (event: MouseEvent<HTMLAnchorElement>): void => {
    onClick?.(event);
    if (event.defaultPrevented || event.button !== 0) return;
    if (event.metaKey || event.ctrlKey || event.shiftKey || event.altKey) return;
    event.preventDefault();
    navigate(to);
  };
  return <a href={basePath() + to} onClick={follow} {...rest} />;
}
