// node format.mjs [--check]: formats the TypeScript of the page and the scripts that test it, at 120 columns. With
// --check nothing is written: files that would change are listed, and so are lines that no formatter breaks (comments),
// and the exit status is 1. Settings keep what an author broke by hand, where it fits: docs/decisions/README.md has the
// reason for this formatter.
import {readdirSync, readFileSync, writeFileSync} from 'node:fs';
import {createRequire} from 'node:module';
import {createFromBuffer} from '@dprint/formatter';

const COLUMNS = 120, MAX_PASSES = 8;
const style = {
  quoteStyle: 'preferSingle',
  'jsx.quoteStyle': 'preferDouble',
  quoteProps: 'preserve',
  useBraces: 'maintain',
  spaceSurroundingProperties: false,
  'importDeclaration.spaceSurroundingNamedImports': false,
  'exportDeclaration.spaceSurroundingNamedExports': false,
  'module.sortImportDeclarations': 'maintain',
  'module.sortExportDeclarations': 'maintain',
  'importDeclaration.sortNamedImports': 'maintain',
  'exportDeclaration.sortNamedExports': 'maintain',
  'arrowFunction.useParentheses': 'preferNone',
  nextControlFlowPosition: 'sameLine',
  operatorPosition: 'sameLine',
  'conditionalExpression.operatorPosition': 'nextLine',
  'conditionalExpression.linePerExpression': false,
  'jsx.bracketPosition': 'sameLine',
  preferHanging: true,
  'arrayExpression.preferHanging': 'never',
  'unionAndIntersectionType.preferHanging': false,
  'jsxAttributes.preferHanging': false,
};

const formatter = createFromBuffer(
  readFileSync(createRequire(import.meta.url).resolve('@dprint/typescript/plugin.wasm')),
);
formatter.setConfig({lineWidth: COLUMNS, indentWidth: 2, newLineKind: 'lf'}, style);
const wrong = formatter.getConfigDiagnostics();
if (wrong.length > 0) throw new Error(JSON.stringify(wrong));

// A break of one pass can enable a change in the next one: the file is formatted until nothing changes.
function formatted(filePath, fileText) {
  for (let pass = 0; pass < MAX_PASSES; ++pass) {
    const next = formatter.formatText({filePath, fileText});
    if (next === fileText) return next;
    fileText = next;
  }
  throw new Error(`${filePath}: still changes after ${MAX_PASSES} passes`);
}

const root = new URL('../', import.meta.url);
const scriptsIn = (folder, deep) =>
  readdirSync(new URL(folder, root), {withFileTypes: true}).flatMap(entry =>
    entry.isDirectory() ? deep ? scriptsIn(`${folder}${entry.name}/`, deep) : []
      : /\.(ts|tsx|mjs)$/.test(entry.name) ? [folder + entry.name] : []
  );
const files = [...scriptsIn('web/src/', true), ...scriptsIn('web/', false), ...scriptsIn('tests/web/', false)].sort();

const check = process.argv.includes('--check');
for (const file of files) {
  const path = new URL(file, root), before = readFileSync(path, 'utf8'), after = formatted(file, before);
  if (!check && after !== before) writeFileSync(path, after);
  if (!check) continue;
  if (after !== before) {
    console.error(`${file}: not formatted; run: node web/format.mjs`);
    process.exitCode = 1;
  }
  after.split('\n').forEach((line, i) => {
    if (line.length <= COLUMNS || !/\/\/ |^\s*\* /.test(line)) return;
    console.error(`${file}:${i + 1}: a comment of ${line.length} columns; break it before ${COLUMNS}`);
    process.exitCode = 1;
  });
}
