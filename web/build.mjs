// node build.mjs OUTDIR: bundles the viewer (src/viewer/main.tsx) and its style into viewer.js and viewer.css, and the
// page of a run that goes on (src/live/main.ts) into live.js and live.css.
import {existsSync, mkdirSync, readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {build} from 'esbuild';
import {minify} from 'terser';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

const target = ['chrome103', 'firefox113', 'safari16.4']; // DecompressionStream is the newest thing used
const common = {outdir, bundle: true, minify: true, charset: 'utf8', target, logLevel: 'warning'};

// Preact's licence must be in every copy: the program's, and each report's.
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
// key by key.
function packed(words) {
  const lists = [Object.keys(words), ...[0, 1].map(lang => Object.values(words).map(said => said[lang]))];
  const broken = lists.flat().find(text => text.includes('\n'));
  if (broken) throw new Error(`src/i18n/words.json: a word is one line: ${broken}`);
  const [keys, ...texts] = lists.map(list => `${JSON.stringify(list.join('\n'))}.split("\\n")`);
  return `const en = ${texts[0]}, zh = ${
    texts[1]
  };\nexport default Object.fromEntries(${keys}.map((key, i) => [key, [en[i], zh[i]]]));\n`;
}

// A bundle carries only the dictionary entries that its own sources name: a key as a whole string, or by its beginning
// ("kind.${…}").
const dictionary = JSON.parse(readFileSync(new URL('src/i18n/words.json', import.meta.url), 'utf8')), said = new Set();
async function wordsOf(options) {
  const {metafile} = await build({...options, write: false, metafile: true});
  const sources = Object.keys(metafile.inputs).filter(file => /\.tsx?$/.test(file)).map(file =>
    readFileSync(file, 'utf8')
  ).join('\n');
  const begins = [...new Set([...sources.matchAll(/`([\w.]+\.)\$\{/g)].map(found => found[1]))];
  const named = key =>
    sources.includes(`'${key}'`) || sources.includes(`'${key.replace(/\.one$/, '')}'`) ||
    begins.some(begin => key.startsWith(begin));
  const kept = Object.fromEntries(Object.entries(dictionary).filter(([key]) => named(key)));
  for (const key of Object.keys(kept)) said.add(key);
  return {
    name: 'words',
    setup(bundle) {
      bundle.onLoad({filter: /i18n[/\\]words\.json$/}, () => ({contents: packed(kept), loader: 'js'}));
    },
  };
}

// esbuild bundles, and terser, which also sees what a name holds, makes of that a twentieth less.
async function script(options) {
  mkdirSync(outdir, {recursive: true});
  const made = await build({...options, write: false});
  for (const {path, text} of made.outputFiles) {
    const {code} = await minify(text, {ecma: 2020, compress: {ecma: 2020}, format: {ecma: 2020, comments: /^!/}});
    writeFileSync(path, code);
  }
}

const viewer = {
  ...common,
  plugins: [analyses],
  banner: {js: preact},
  entryPoints: {'viewer': 'src/viewer/main.tsx'},
  format: 'iife',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
};
await script({...viewer, plugins: [analyses, await wordsOf(viewer)]});
await build({
  ...common,
  entryPoints: {'viewer': 'src/viewer/viewer.css', 'live': 'src/live/live.css'},
});
const live = {...common, entryPoints: {'live': 'src/live/main.ts'}, format: 'iife'};
await script({...live, plugins: [await wordsOf(live)]});
const unsaid = Object.keys(dictionary).filter(key => !said.has(key));
if (unsaid.length > 0) throw new Error(`src/i18n/words.json holds words that no page says: ${unsaid.join(', ')}`);
