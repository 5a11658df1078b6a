// Keeps the browser's settings from one visit to the next: theme and language.
export function remember(key: string, value?: string): string | null {
  try {
    if (value !== undefined) localStorage.setItem('stageline.' + key, value);
    return localStorage.getItem('stageline.' + key);
  } catch {
    return null; // storage may be forbidden; the page works without
  }
}
