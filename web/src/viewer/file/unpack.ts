// Unpacks the content of a report: gzip in base64.
const withBase64 = Uint8Array as unknown as {fromBase64?: (text: string) => Uint8Array<ArrayBuffer>};

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (withBase64.fromBase64) return withBase64.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export const unpack = (text: string): Promise<ArrayBuffer> => unzip(fromBase64(text));
export async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream('gzip'));
  return new Response(stream).arrayBuffer();
}
