// Defines the interface between a page of the viewer and the shell around it.
import type {Api, Run} from './api';
import type {Theme} from '../../theme';
import type {PageId, Route} from './route';

export type {Theme};

// A line of the list that ? opens: keys (or a gesture in words), and what they do.
export interface KeyWords {
  keys?: string;
  gesture?: string;
  does: string;
}

// A page is made when it is first shown, and kept: one comes back to what one left.
export interface Page {
  element: HTMLElement;
  // The page is in sight from now on. `route`: what the address says; null: come back, to what was left.
  show(route: Pick<Route, 'rest' | 'query'> | null): void;
  hide?(): void;
  // Returns the part of the address for the page while it is shown. It is called after Shell.moved().
  address(): Pick<Route, 'rest' | 'query'>;
  // Theme or language have changed; also before the first show().
  restyle(): void;
  keys?(): KeyWords[];
  settled?(): boolean; // nothing is on its way, where a page can tell
  focus?(): void; // reached by keyboard; default: its first heading, else the element
}

export interface Shell {
  readonly api: Api;
  readonly run: Run;
  readonly theme: Theme;
  readonly page: PageId;
  // Goes to another page, with a new entry in the browser's history. Without `to` the page is as it was left.
  go(page: PageId, to?: Partial<Pick<Route, 'rest' | 'query'>>): void;
  // For links that open in a new tab as well: <a href={shell.href('answers', {rest: 'idle'})}>. Clicks on it need no
  // handler.
  href(page: PageId, to?: Partial<Pick<Route, 'rest' | 'query'>>): string;
  // The page that is shown has another address now; the browser's line follows a moment later. `jumped`: what was shown
  // before is a place to come back to, with the browser's Back.
  moved(jumped?: boolean): void;
  say(sentence: string): void; // read out
  lost(what: string): void; // a part of the address that leads to nothing: said above the page until one goes elsewhere
  toggleTheme(): void;
  toggleLang(): void;
  help(): void;
}
