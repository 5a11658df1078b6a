// Who answers the page's questions (docs/viewer-protocol.md): a server, or the file that the page came in
// (file/source.ts).
export type Params = Record<string, string | number | undefined>;

export interface Reply {
  status: number; // as the protocol has them, from either
  isJson: boolean;
  json(): Promise<unknown>;
  bytes(): Promise<ArrayBuffer>;
}
export interface Source {
  // `path` without "/api/". Rejects with an AbortError when the signal says so.
  ask(path: string, params: Params, signal?: AbortSignal): Promise<Reply>;
  put?(path: string, body: unknown): Promise<Reply>; // a server's: keeps it
  events?(): EventSource; // of a run that is still being read
}

// A run of a server that has several has a page to open others (start/page.tsx) above it.
export const startOf = ():
  | string
  | null => (/\/runs\/\d+\/$/.test(location.pathname) ? '../../' + location.search : null);

export function serverSource(): Source {
  const base = new URL('.', location.href).pathname; // "/", or "/TOKEN/" as the server printed it
  function url(path: string, params: Params): string {
    const query = new URLSearchParams();
    for (const [name, value] of Object.entries(params)) if (value !== undefined) query.set(name, String(value));
    const text = query.toString().replaceAll('%2C', ',');
    return `${base}api/${path}${text ? '?' + text : ''}`;
  }
  return {
    async ask(path, params, signal) {
      const answer = await fetch(url(path, params), signal ? {signal} : {});
      const isJson = answer.headers.get('content-type')?.startsWith('application/json') ?? false;
      return {status: answer.status, isJson, json: () => answer.json(), bytes: () => answer.arrayBuffer()};
    },
    async put(path, body) {
      const answer = await fetch(url(path, {}), {method: 'PUT', body: JSON.stringify(body)});
      return {status: answer.status, isJson: true, json: () => answer.json(), bytes: () => answer.arrayBuffer()};
    },
    events: () => new EventSource(url('events', {})),
  };
}
