// Makes the command to type for the answer that is shown.

// As a shell reads it.
export const quoted = (
  text: string,
): string => (/^[\w@%+=:,./-]+$/.test(text) ? text : `'${text.replaceAll("'", "'\\''")}'`);
export const commandWith = (verb: string, paths: readonly string[], last: string): string =>
  ['stageline', verb, ...paths.map(quoted), quoted(last)].join(' ');
