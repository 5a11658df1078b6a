import { ILayoutRestorer, JupyterFrontEnd, JupyterFrontEndPlugin } from '@jupyterlab/application';
import { ICommandPalette, IThemeManager, MainAreaWidget, WidgetTracker } from '@jupyterlab/apputils';
import { IDefaultFileBrowser, IFileBrowserFactory } from '@jupyterlab/filebrowser';
import { ITranslator } from '@jupyterlab/translation';

import { RunPage } from './run_page';
import { say } from './words';

const OPEN = 'stageline:open', HERE = 'stageline:open-folder';

/** "Open in Stageline" on files and folders of the file browser. */
const plugin: JupyterFrontEndPlugin<void> = {
  id: 'stageline-jupyterlab:plugin',
  autoStart: true,
  requires: [IFileBrowserFactory],
  optional: [IDefaultFileBrowser, ICommandPalette, ILayoutRestorer, IThemeManager, ITranslator],
  activate: (
    app: JupyterFrontEnd,
    browsers: IFileBrowserFactory,
    browser: IDefaultFileBrowser | null,
    palette: ICommandPalette | null,
    restorer: ILayoutRestorer | null,
    themes: IThemeManager | null,
    translator: ITranslator | null,
  ) => {
    const language = (translator?.languageCode ?? '').startsWith('zh') ? 'zh' : 'en';
    const tracker = new WidgetTracker<MainAreaWidget<RunPage>>({ namespace: 'stageline' });
    const isDark = () => !!themes?.theme && !themes.isLight(themes.theme);

    const open = (path: string) => {
      const shown = tracker.find(widget => widget.content.path === path);
      const widget = shown ?? new MainAreaWidget({ content: new RunPage(path, { language, dark: isDark() }) });
      if (!shown) {
        widget.id = `stageline-${crypto.randomUUID()}`;
        app.shell.add(widget, 'main');
        void tracker.add(widget);
      }
      app.shell.activateById(widget.id);
      return widget;
    };
    const selected = () => Array.from(browsers.tracker.currentWidget?.selectedItems() ?? []);
    themes?.themeChanged.connect(() => tracker.forEach(widget => widget.content.setDark(isDark())));

    app.commands.addCommand(OPEN, {
      label: say(language, 'open'),
      isVisible: () => selected().length > 0,
      execute: args => typeof args['path'] === 'string' ? open(args['path']) : selected().map(item => open(item.path)),
    });
    app.contextMenu.addItem({ command: OPEN, selector: '.jp-DirListing-item[data-isdir]', rank: 3 });

    app.commands.addCommand(HERE, {
      label: say(language, 'here'),
      isEnabled: () => !!browser,
      execute: () => browser && open(browser.model.path),
    });
    palette?.addItem({ command: HERE, category: 'Stageline' });
    void restorer?.restore(tracker, {
      command: OPEN,
      args: widget => ({ path: widget.content.path }),
      name: widget => widget.content.path,
    });
  },
};

export default plugin;
