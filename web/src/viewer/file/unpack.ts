// Unpacks the content of a report: gzip in base64.
import {release} from '../shell/wire';

const withBase64 = Uint8Array as unknown as {fromBase64?: (text: string) => Uint8Array<ArrayBuffer>};

export function fromBase64(text: string): Uint8Array<ArrayBuffer> {
  if (withBase64.fromBase64) return withBase64.fromBase64(text);
  const raw = atob(text), bytes = new Uint8Array(raw.length);
  for (let i = 0; i < raw.length; ++i) bytes[i] = raw.charCodeAt(i);
  return bytes;
}

export const unpack = (text: string): Promise<ArrayBuffer> => unzip(fromBase64(text));
// Takes the bytes: afterwards they are gone.
export async function unzip(bytes: Uint8Array<ArrayBuffer>): Promise<ArrayBuffer> {
  const {readable, writable} = new DecompressionStream('gzip'), to = writable.getWriter(), from = readable.getReader(),
    chunks: Uint8Array[] = [];
  const wrote = Promise.allSettled([to.write(bytes), to.close()]); // what fails there, fails in reading
  for (let read = await from.read(); !read.done; read = await from.read()) chunks.push(read.value as Uint8Array);
  await wrote;
  release(bytes);
  const out = new Uint8Array(chunks.reduce((sum, chunk) => sum + chunk.length, 0));
  let at = 0;
  for (const chunk of chunks) {
    out.set(chunk, at);
    at += chunk.length;
    release(chunk);
  }
  return out.buffer;
}
