// Commands to copy: whole, with the run's path, so that they do in a terminal what the page shows.
const PLAIN = /^[A-Za-z0-9_@%+=:,./-]+$/;
export const quoted = (text: string): string => (PLAIN.test(text) ? text : `'${text.replaceAll("'", `'\\''`)}'`);

// commandLine('analyze stragglers', run.paths, '--steps 3').
export const commandLine = (words: string, paths: readonly string[], flags = ''): string =>
  [`stageline ${words}`, ...paths.map(quoted), flags].filter(Boolean).join(' ');
