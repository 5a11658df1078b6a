// "Open in Stageline": shows the page that `stageline report` writes of a file or folder. Where no program can run (an
// editor in a browser, without a server), it shows pages that were written elsewhere.
'use strict';

const vscode = require('vscode');

const say = vscode.l10n.t;

/** Node's modules; null in a browser. */
function node() {
  if (typeof process === 'undefined' || !process.versions?.node) return null;
  return { child: require('child_process'), fs: require('fs'), os: require('os'), path: require('path') };
}

/** Resolves to the page's text, or to undefined where the user gave up. Rejects with the program's own message. */
function writePage(path, cancelled) {
  const { child, fs, os, path: paths } = node();
  const program = vscode.workspace.getConfiguration('stageline').get('program') || 'stageline';
  const folder = fs.mkdtempSync(paths.join(os.tmpdir(), 'stageline-'));
  const page = paths.join(folder, 'page.html');
  const lang = vscode.env.language.startsWith('zh') ? 'zh' : 'en';
  return new Promise((done, fail) => {
    const running = child.spawn(program, ['report', '--lang', lang, '-o', page, path], { stdio: ['ignore', 'ignore', 'pipe'] });
    let said = '';
    running.stderr.on('data', part => {
      said = (said + part).slice(-4000);
    });
    cancelled.onCancellationRequested(() => running.kill());
    running.on('error', error => {
      const missing = error.code === 'ENOENT';
      fail(Object.assign(
        new Error(missing
          ? say('{0} was not found. pip install stageline installs it; the setting stageline.program names it where it is elsewhere.', program)
          : error.message),
        { missing },
      ));
    });
    running.on('exit', code => {
      if (cancelled.isCancellationRequested) return done(undefined);
      if (code !== 0) return fail(new Error(said.trim()));
      done(fs.readFileSync(page, 'utf8'));
    });
  }).finally(() => fs.rmSync(folder, { recursive: true, force: true }));
}

/** The text of a page that Stageline wrote; anything else is refused, since it would run in the editor. */
async function readPage(uri) {
  const text = new TextDecoder().decode(await vscode.workspace.fs.readFile(uri));
  if (text.slice(0, 2000).includes('<meta name="generator" content="Stageline ')) return text;
  throw new Error(say(
    '{0} is no page of Stageline. In a browser without a server no program can run: open the page that stageline report writes.',
    name(uri),
  ));
}

const name = uri => uri.path.split('/').filter(Boolean).pop() ?? 'Stageline';

function show(uri, page) {
  const panel = vscode.window.createWebviewPanel('stageline', name(uri), vscode.ViewColumn.Active, {
    enableScripts: true, // the page's own, by its hash
    localResourceRoots: [],
    retainContextWhenHidden: true,
  });
  const colour = () => {
    const { HighContrast, Dark } = vscode.ColorThemeKind;
    const dark = [HighContrast, Dark].includes(vscode.window.activeColorTheme.kind);
    panel.webview.html = page.replace('<html ', `<html data-theme="${dark ? 'dark' : 'light'}" `);
  };
  const following = vscode.window.onDidChangeActiveColorTheme(colour);
  panel.onDidDispose(() => following.dispose());
  colour();
}

async function open(uri) {
  uri = uri ?? vscode.window.activeTextEditor?.document.uri;
  if (!uri) return;
  try {
    const page = node() && uri.scheme === 'file' && !uri.path.endsWith('.html')
      ? await vscode.window.withProgress(
        { location: vscode.ProgressLocation.Notification, title: say('Stageline reads {0}', name(uri)), cancellable: true },
        (_, cancelled) => writePage(uri.fsPath, cancelled),
      )
      : await readPage(uri);
    if (page !== undefined) show(uri, page);
  } catch (error) {
    const settings = say('Settings');
    const chosen = await vscode.window.showErrorMessage(error.message, ...(error.missing ? [settings] : []));
    if (chosen) await vscode.commands.executeCommand('workbench.action.openSettings', 'stageline.program');
  }
}

exports.activate = context => {
  context.subscriptions.push(vscode.commands.registerCommand('stageline.open', (uri, all) => Promise.all((all?.length ? all : [uri]).map(open))));
};
