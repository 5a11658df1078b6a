// node build.mjs OUTDIR: bundles src/main.ts and src/style.css into report.js and report.css.
import {build} from 'esbuild';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

await build({
  entryPoints: {'report': 'src/main.ts'},
  outdir,
  bundle: true,
  minify: true,
  format: 'iife',
  target: ['chrome103', 'firefox113', 'safari16.4'],  // DecompressionStream is the newest thing used
  charset: 'utf8',
  legalComments: 'none',
  logLevel: 'warning',
});
await build({
  entryPoints: {'report': 'src/style.css'},
  outdir,
  bundle: true,
  minify: true,
  charset: 'utf8',
  target: ['chrome103', 'firefox113', 'safari16.4'],
  logLevel: 'warning',
});
