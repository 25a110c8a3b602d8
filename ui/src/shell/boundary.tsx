/** What is shown when a screen itself has failed: the failure, and a way on. The rest of the page stays. */
import { Component, type ErrorInfo, type ReactNode } from "react";

type State = { error: Error | null };

export class Boundary extends Component<{ children: ReactNode }, State> {
  override state: State = { error: null };

  static getDerivedStateFromError(error: Error): State {
    return { error };
  }

  override componentDidCatch(error: Error, info: ErrorInfo): void {
    console.error(error, info.componentStack);
  }

  override render(): ReactNode {
    if (this.state.error === null) return this.props.children;
    return (
      <div className="problem" role="alert">
        <strong>This screen has failed</strong>
        <span>{this.state.error.message}</span>
        <span><button type="button" onClick={() => this.setState({ error: null })}>Show it again</button> <button type="button" onClick={() => location.reload()}>Reload the page</button></span>
      </div>
    );
  }
}
