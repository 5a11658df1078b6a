// Compares the report's answers with the server's. The same questions about the same run go to `stageline view` and to
// the store of a report's page (web/src/viewer/file). Their contents must agree, except for numbers that each assigns
// separately.
import {readFileSync} from 'node:fs';
import {dirname, join} from 'node:path';
import {fileURLToPath, pathToFileURL} from 'node:url';

const web = join(dirname(fileURLToPath(import.meta.url)), '../../web');

// Parts of the page as a module of node's: `contents` exports them.
export async function moduleOf(folder, name, contents) {
  const {build} = await import(pathToFileURL(join(web, 'node_modules/esbuild/lib/main.js'))),
    outfile = join(folder, `${name}.mjs`);
  await build({stdin: {contents, resolveDir: join(web, 'src'), loader: 'ts'}, outfile, bundle: true, format: 'esm',
    logLevel: 'warning'});
  return import(pathToFileURL(outfile));
}
export const storeModule = folder => moduleOf(folder, 'store', `export * from './viewer/file/store';`);

// Returns the blocks of a report, in their order.
const bytesOf = base64 => new Uint8Array(Buffer.from(base64, 'base64'));
export function blocksOf(path) {
  const found = [
    ...readFileSync(path, 'utf8').matchAll(
      /<script type="application\/octet-stream" data-(answer|timeline|lanes)="([^"]*)">([^<]*)<\/script>/g,
    ),
  ];
  const of = (type, name) => found.filter(([, t, n]) => t === type && n === name).map(([, , , text]) => text);
  const groups = new Map();
  for (const [, , name, text] of found.filter(([, t]) => t === 'lanes')) {
    const [first, last] = name.split('-').map(Number);
    if (!groups.has(name)) groups.set(name, {first, last, pieces: []});
    groups.get(name).pieces.push(bytesOf(text));
  }
  return {answer: name => of('answer', name)[0], names: found.filter(([, t]) => t === 'answer').map(([, , n]) => n),
    packed: {head: bytesOf(of('timeline', 'head')[0]), groups: [...groups.values()],
      links: bytesOf(of('timeline', 'links')[0]), words: {noArguments: 'none here'}}};
}

const ARRAYS = {f64: Float64Array, f32: Float32Array, u32: Uint32Array, i32: Int32Array, u8: Uint8Array};
export function decode(buffer) {
  const length = new DataView(buffer).getUint32(0, true),
    header = JSON.parse(new TextDecoder().decode(new Uint8Array(buffer, 4, length)));
  const base = Math.ceil((4 + length) / 8) * 8, columns = {};
  for (const {name, type, offset, count} of header.columns ?? [])
    columns[name] = [...new ARRAYS[type](buffer, base + offset, count)];
  return {header, columns, base};
}

const BINARY = new Set(['tiles', 'slices', 'flows', 'counter']);
// Returns the content of an answer, by name and not by number.
export function said(path, buffer, params) {
  if (path === 'tiles') {
    const {header, base} = decode(buffer);
    return header.rows.map(({lane, row, kinds}) => ({lane, row, kinds: kinds.map(({kind, offset}) =>
      `${kind} ${Buffer.from(buffer, base + offset, header.n).toString('hex')}`
    )}));
  }
  if (BINARY.has(path) || (path === 'histogram' && (params.min !== undefined || params.max !== undefined))) {
    const {header: {columns: _, names, ...header}, columns} = decode(buffer);
    const texts = new Map(names);
    if (columns.name) columns.name = columns.name.map(id => texts.get(id));
    return {header,
      columns: Object.fromEntries(Object.entries(columns).map(([name, values]) => [name, values.map(String)]))};
  }
  const named = JSON.parse(new TextDecoder().decode(buffer), function(key, value) {
    return key === 'name_id' ? undefined : value;
  });
  // Of equal sums and counts the order is each one's own.
  const by = (list, ...keys) =>
    list?.sort((a, b) => keys.reduce((order, key) => order || (a[key] < b[key] ? -1 : a[key] > b[key] ? 1 : 0), 0));
  by(named.rows, 'sum_ns', 'name', 'kind');
  by(named.matches, 'count', 'name');
  return named;
}

// xorshift: the same questions every time.
export function dice(seed) {
  let state = seed;
  return n => {
    state ^= state << 13;
    state ^= state >>> 17;
    state ^= state << 5;
    return Math.floor((state >>> 0) / 4294967296 * n);
  };
}

// Questions of every type about a run; names are looked up at each side.
export function questions(run, names, count, seed) {
  const roll = dice(seed), out = [], slices = run.lanes.filter(lane => lane.type !== 'counter'),
    counters = run.lanes.filter(lane => lane.type === 'counter');
  const window = () => {
    const span = Math.max(run.span_ns, 1), width = span / 2 ** roll(20) * (1 + roll(1000) / 1000),
      t0 = roll(1000) / 1000 * span - width / 3;
    return roll(4) === 0 ? {} : {t0: Math.max(0, t0), t1: Math.max(0, t0) + width};
  };
  const lanes = () => (roll(3) === 0 || run.lanes.length === 0 ? {}
    : {lanes: slices.filter(() => roll(2) === 0).map(lane => lane.id).join()});
  const text = () => {
    const name = names[roll(names.length)] ?? 'x', at = roll(Math.max(1, name.length - 3));
    return name.slice(at, at + 1 + roll(6)).replace(/[^\w ]/g, '') || 'a';
  };
  const words = ['mb:1', 'kind:F', 'step:1', 'rank:0', 'stage:1', 'chunk:0', 'mb:0 kind:B', '"mb:1"'];
  const wanted = () => (roll(3) === 0 ? {q: `${text()}.*[a-z_]+`, regex: 1}
    : roll(3) === 0 ? {q: words[roll(words.length)]} : {q: text()});
  for (let k = 0; k < count; ++k) {
    const any = slices[roll(slices.length)];
    out.push(['tiles', {...window(), ...lanes(), n: 1 + roll(900)}], ['slices', {...window(), ...lanes(),
      min_ns: roll(2) ? 0 : roll(20000), limit: 1 + roll(400)}], ['select', {...window(), ...lanes()}], ['flows', {
      ...window(),
      ...lanes(),
      limit: 100_000,
    }], ['search', wanted()], ['histogram', {...window(), ...lanes(), ...wanted()}], ['histogram', {...wanted(),
      min: roll(3000), max: 1e6}], ['find', {...wanted(), from: roll(1000) / 1000 * run.span_ns,
      dir: roll(2) ? 'next' : 'prev'}]);
    if (any) out.push(['slice', {lane: any.id, slice: roll(any.slices)}]);
    if (counters.length > 0)
      out.push(['counter', {...window(), lane: counters[roll(counters.length)].id, n: 1 + roll(300)}]);
  }
  return out;
}
