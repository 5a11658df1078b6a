// Redraws its content only when one of `by` has changed: a slider that moves leaves most of the page as it is.
import {Component, type ComponentChildren} from 'preact';

export class Kept extends Component<{by: readonly unknown[]; children: ComponentChildren}> {
  override shouldComponentUpdate({by}: {by: readonly unknown[]}): boolean {
    return by.some((one, i) => one !== this.props.by[i]);
  }
  render(): ComponentChildren {
    return this.props.children;
  }
}
