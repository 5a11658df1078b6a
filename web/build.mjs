// node build.mjs OUTDIR: bundles the viewer (src/viewer/served.ts) and its style into viewer.js, chunk.js,
// late_pages.js and viewer.css, the script of a report (src/viewer/report.ts) into report.js, and the page of a run
// that goes on (src/live/main.ts) into live.js and live.css.
import {existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {resolve} from 'node:path';
import {build} from 'esbuild';
import {minify} from 'terser';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

const target = ['chrome103', 'firefox113', 'safari16.4']; // DecompressionStream is the newest thing used
const common = {outdir, bundle: true, minify: true, charset: 'utf8', target, logLevel: 'warning'};

// Preact's licence must be in every copy: the program's, and each report's. Scripts that hold its code begin with it.
const preact = `/*! Preact\n${
  readFileSync(new URL('./node_modules/preact/LICENSE', import.meta.url), 'utf8').trim()
}\n*/`;

// `import analyses from 'analyses'`: family → its analyses in order, each with its title in both languages, as
// src/analyses/*/words.json say.
const folders = new URL('../src/analyses/', import.meta.url);
const families = () => {
  const found = {};
  for (const file of readdirSync(folders).map(folder => new URL(`${folder}/words.json`, folders)).filter(file =>
    existsSync(file)
  ))
    for (const [name, {family = 'other', place = 0, title}] of Object.entries(
      JSON.parse(readFileSync(file, 'utf8')).answers ?? {},
    ))
      (found[family] ??= []).push([place, name, ...title]);
  for (const list of Object.values(found)) list.sort((a, b) => a[0] - b[0]);
  return Object.fromEntries(Object.entries(found).map(([family, list]) => [family, list.map(said => said.slice(1))]));
};
const analyses = {
  name: 'analyses',
  setup(bundle) {
    bundle.onResolve({filter: /^analyses$/}, () => ({path: 'analyses', namespace: 'analyses'}));
    bundle.onLoad({filter: /.*/, namespace: 'analyses'},
      () => ({contents: JSON.stringify(families()), loader: 'json'}));
  },
};

// The dictionary as keys, English and Chinese, each one text with a word a line: compressed it is a tenth smaller than
// key by key. The entries in `unnamed` come last, under the short names ".0", ".1", … that a script counts itself.
function packed(words, unnamed) {
  const lists = [
    Object.keys(words),
    ...[0, 1].map(lang => [...Object.values(words), ...unnamed].map(said => said[lang])),
  ];
  const broken = lists.flat().find(text => text.includes('\n'));
  if (broken) throw new Error(`src/i18n/words.json: a word is one line: ${broken}`);
  const [keys, en, zh] = lists.map(list => `${JSON.stringify(list.join('\n'))}.split("\\n")`);
  return `const keys = ${keys}, zh = ${zh};\nexport default Object.fromEntries(${en}.map((text, i) => [` +
    "keys[i] ?? '.' + (i - keys.length).toString(36), [text, zh[i]]]));\n";
}

const dictionary = JSON.parse(readFileSync(new URL('src/i18n/words.json', import.meta.url), 'utf8')), said = new Set();
const dictionaryOf = contents => ({
  name: 'words',
  setup(bundle) {
    bundle.onLoad({filter: /i18n[/\\]words\.json$/}, () => ({contents, loader: 'js'}));
  },
});
const packing = {ecma: 2020, compress: {ecma: 2020, passes: 3}, format: {ecma: 2020, comments: false}};

// A script carries only the dictionary entries that its packed code names: a key as a whole string, or by its beginning
// ("kind.${…}"). A key that is nowhere put together has a short name there, since a key far from its like is hardly
// compressed: that makes a script 1 % smaller.
async function wordsOf(options) {
  const {outputFiles} = await build({...options, plugins: [...options.plugins, dictionaryOf('export default {};')],
    write: false});
  const texts = await Promise.all(
    outputFiles.map(file => minify(file.text, {...packing, module: options.format === 'esm'})),
  );
  const code = texts.map(text => text.code).join('\n');
  const begins = [...new Set([...code.matchAll(/`([\w.]+\.)\$\{/g)].map(found => found[1]))];
  const strings = new Set([...code.matchAll(/(["'`])([\w.-]+)\1/g)].map(found => found[2]));
  const isBegun = key => begins.some(begin => key.startsWith(begin));
  const kept = Object.fromEntries(
    Object.entries(dictionary).filter(([key]) =>
      strings.has(key) || strings.has(key.replace(/\.one$/, '')) || isBegun(key)
    ),
  );
  for (const key of Object.keys(kept)) said.add(key);
  const isShort = key => key.includes('.') && !key.endsWith('.one') && !(`${key}.one` in kept) && !isBegun(key);
  const entries = Object.entries(kept), named = entries.filter(([key]) => !isShort(key)),
    unnamed = entries.filter(([key]) => isShort(key));
  const short = new Map(unnamed.map(([key], i) => [key, `.${i.toString(36)}`]));
  return {
    plugin: dictionaryOf(packed(Object.fromEntries(named), unnamed.map(([, said]) => said))),
    shortened: text =>
      text.replace(/(["'`])(\w+(?:\.\w+)+)\1/g, (all, _, key) => short.has(key) ? `"${short.get(key)}"` : all),
  };
}

// esbuild bundles, and terser, which also sees what a name holds, makes of that a twentieth less.
async function script(options) {
  mkdirSync(outdir, {recursive: true});
  const {plugin, shortened} = await wordsOf(options);
  const made = await build({...options, plugins: [...options.plugins, plugin], write: false, metafile: true});
  const holders = Object.entries(made.metafile.outputs).filter(([, {inputs}]) =>
    Object.keys(inputs).some(name => name.includes('node_modules/preact/'))
  ).map(([path]) => resolve(path));
  for (const {path, text} of made.outputFiles) {
    const {code} = await minify(shortened(text), {...packing, module: options.format === 'esm'});
    writeFileSync(path, holders.includes(path) ? `${preact}\n${code}` : code);
  }
}

const viewer = {
  ...common,
  plugins: [analyses],
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
};
// A server's page has three scripts: the first, what few visits need (src/viewer/late_pages.ts), and what both share. A
// report has one, without what only a server answers.
await script({...viewer, entryPoints: {'viewer': 'src/viewer/served.ts'}, format: 'esm', splitting: true,
  chunkNames: '[name]', define: {REPORT: 'false'}});
await script({...viewer, entryPoints: {'report': 'src/viewer/report.ts'}, format: 'iife', define: {REPORT: 'true'}});
await build({
  ...common,
  entryPoints: {'viewer': 'src/viewer/viewer.css', 'live': 'src/live/live.css'},
});
await script({...common, plugins: [], entryPoints: {'live': 'src/live/main.ts'}, format: 'iife'});
const unsaid = Object.keys(dictionary).filter(key => !said.has(key));
if (unsaid.length > 0) throw new Error(`src/i18n/words.json holds words that no page says: ${unsaid.join(', ')}`);
