// node build.mjs OUTDIR: bundles the viewer (src/viewer/main.tsx) and its style into viewer.js and viewer.css.
import {build} from 'esbuild';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

const target = ['chrome103', 'firefox113', 'safari16.4'];  // DecompressionStream is the newest thing used
const common = {outdir, bundle: true, minify: true, charset: 'utf8', target, logLevel: 'warning'};

await build({
  ...common,
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
