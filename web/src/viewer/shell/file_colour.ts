// Colours of Python frames by their file, in the flame graph and in the timeline.

// Computes FNV-1a.
export function hashed(seed: number, text: string): number {
  let hash = seed;
  for (let i = 0; i < text.length; ++i) hash = Math.imul(hash ^ text.charCodeAt(i), 16777619);
  return hash >>> 0;
}

const known = [new Map<string, string | null>(), new Map<string, string | null>()] as const; // by name: light, dark
// A muted colour for each file of Python code: ink stays readable on it. null: the name has no file.
export function fileColour(name: string, dark: boolean): string | null {
  const colours = known[dark ? 1 : 0];
  let colour = colours.get(name);
  if (colour === undefined) {
    const file = /^(.+)\(\d+\): /.exec(name)?.[1];
    colours.set(name, colour = file ? `hsl(${hashed(16777619, file) % 12 * 30} 34% ${dark ? 30 : 73}%)` : null);
  }
  return colour;
}
