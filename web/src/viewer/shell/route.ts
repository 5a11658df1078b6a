// The address names the page and its part. "#/answers/idle?rank=3" has the page, the rest of the path, and parameters.
// "#v=…" is the timeline's, as the first viewers wrote it.
export const PAGES = ['overview', 'pipeline', 'timeline', 'flame', 'answers', 'plan', 'compare'] as const;
export type PageId = typeof PAGES[number];
// rest is "idle", without slashes around it. `unknown` is the text in the place of a page's name.
export interface Route {
  page: PageId;
  rest: string;
  query: string;
  unknown?: string;
}

const isPage = (text: string): text is PageId => (PAGES as readonly string[]).includes(text);

export function routeOf(hash: string): Route {
  const text = hash.replace(/^#/, '');
  if (text !== '' && !text.startsWith('/')) return {page: 'timeline', rest: '', query: text};
  const at = text.indexOf('?'), path = (at < 0 ? text : text.slice(0, at)).split('/').filter(Boolean);
  const page = path[0] ?? 'overview';
  if (!isPage(page)) return {page: 'overview', rest: '', query: '', unknown: page};
  return {page, rest: path.slice(1).map(safeDecode).join('/'), query: at < 0 ? '' : text.slice(at + 1)};
}

export function hashOf({page, rest, query}: Route): string {
  return `#/${page}${rest ? '/' + rest.split('/').map(encodeURIComponent).join('/') : ''}${query ? '?' + query : ''}`;
}

// Characters that people read in an address stay readable.
export const plainQuery = (query: URLSearchParams): string =>
  query.toString().replaceAll('%2C', ',').replaceAll('%7E', '~').replaceAll('%2F', '/').replaceAll('%3A', ':');

export function safeDecode(text: string): string {
  try {
    return decodeURIComponent(text);
  } catch {
    return text;
  }
}
