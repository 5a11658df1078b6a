import { PathExt, URLExt } from '@jupyterlab/coreutils';
import { ServerConnection } from '@jupyterlab/services';
import { Widget } from '@lumino/widgets';

import { say } from './words';

/** How a page is shown: its language, and the colours of JupyterLab's theme. */
export interface Look {
  language: 'en' | 'zh';
  dark: boolean;
}

/**
 * A run in a frame: the page that `stageline report` writes. The frame has no rights but its own scripts, because names in the page
 * come from the trace.
 */
export class RunPage extends Widget {
  constructor(readonly path: string, look: Look) {
    super();
    this.look = look;
    this.addClass('sl-jupyterlab');
    this.title.label = PathExt.basename(path) || 'Stageline';
    this.title.caption = path;
    this.title.closable = true;
    void this.load();
  }

  /** Shows the page in other colours. */
  setDark(dark: boolean): void {
    if (dark === this.look.dark) return;
    this.look.dark = dark;
    if (this.page) this.showPage();
  }

  dispose(): void {
    this.stopped.abort();
    super.dispose();
  }

  private async load(): Promise<void> {
    const { language } = this.look;
    this.say(say(language, 'reading', this.path || '/'));
    try {
      const settings = ServerConnection.makeSettings();
      const query = URLExt.objectToQueryString({ path: this.path, lang: language });
      const url = URLExt.join(settings.baseUrl, 'stageline', 'page') + query;
      const response = await ServerConnection.makeRequest(url, { signal: this.stopped.signal }, settings);
      const text = await response.text();
      if (this.isDisposed) return;
      if (!response.ok) throw new Error(reason(text) || `${response.status} ${response.statusText}`);
      this.page = text;
      this.showPage();
    } catch (error) {
      if (!this.isDisposed) {
        this.say(`${say(language, 'failed', this.path || '/')}\n\n${error instanceof Error ? error.message : error}`);
      }
    }
  }

  private say(text: string): void {
    const message = document.createElement('pre');
    message.textContent = text;
    this.node.replaceChildren(message);
  }

  private showPage(): void {
    const frame = document.createElement('iframe');
    frame.setAttribute('sandbox', 'allow-scripts');
    frame.title = this.path;
    const theme = this.look.dark ? 'dark' : 'light';
    frame.srcdoc = this.page.replace('<html ', `<html data-theme="${theme}" `);
    this.node.replaceChildren(frame);
  }

  private look: Look;
  private page = '';
  private stopped = new AbortController();
}

/** The message of a server's error, which is JSON. */
function reason(text: string): string {
  try {
    return JSON.parse(text).message ?? '';
  } catch {
    return '';
  }
}
