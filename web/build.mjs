// node build.mjs OUTDIR: bundles the report page (src/main.ts, src/style.css) into report.js and report.css, and the
// viewer (src/viewer) into viewer.js and viewer.css.
import {build} from 'esbuild';

const outdir = process.argv[2];
if (!outdir) throw new Error('usage: node build.mjs OUTDIR');

await build({
  entryPoints: {'report': 'src/main.ts', 'viewer': 'src/viewer/main.ts'},
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
  entryPoints: {'report': 'src/style.css', 'viewer': 'src/viewer/style.css'},
  outdir,
  bundle: true,
  minify: true,
  charset: 'utf8',
  target: ['chrome103', 'firefox113', 'safari16.4'],
  logLevel: 'warning',
});
