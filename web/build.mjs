// node build.mjs OUTDIR: bundles the viewer (src/viewer/main.tsx) and its style into viewer.js and viewer.css.
import {readFileSync} from 'node:fs';
import {build} from 'esbuild';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

const target = ['chrome103', 'firefox113', 'safari16.4'];  // DecompressionStream is the newest thing used
const common = {outdir, bundle: true, minify: true, charset: 'utf8', target, logLevel: 'warning'};

// Preact's licence asks to stand in every copy: the program's, and each report's.
const preact = `/*! Preact\n${readFileSync(new URL('./node_modules/preact/LICENSE', import.meta.url), 'utf8').trim()}\n*/`;

await build({
  ...common,
  banner: {js: preact},
  entryPoints: {'viewer': 'src/viewer/main.tsx'},
  format: 'iife',
  jsx: 'automatic',
  jsxImportSource: 'preact',
  legalComments: 'none',
});
await build({
  ...common,
  entryPoints: {'viewer': 'src/viewer/viewer.css'},
});
