// Adds a second run to one that is open: by its path, from those that this browser has seen, or dropped on the page.
import {bytes} from '../../format';
import {h} from '../../dom';
import {t} from '../../i18n/i18n';
import {failure} from '../answers/working';
import type {Shell} from '../shell/page';
import {recent} from '../shell/recent';
import {addRun, droppedFiles, send} from '../shell/shelf';

export function addView({run}: Shell): HTMLElement {
  const said = h('div', {role: 'status'}),
    field = h('input', {name: 'path', type: 'text', spellcheck: 'false', autocomplete: 'off',
      'aria-label': t('start.path'), placeholder: t('start.path')});
  const add = (second: () => Promise<Parameters<typeof addRun>[1] | null>): void => {
    const go = async (): Promise<void> => {
      said.replaceChildren(t('start.opening'));
      const found = await second();
      if (found) await addRun(run, found);
      else said.replaceChildren();
    };
    go().catch((error: unknown) => said.replaceChildren(failure(error, () => add(second))));
  };
  const own = run.places!.join('\n'), others = recent().filter(one => one.places.join('\n') !== own);
  const form = h('form', {class: 'start-open', submit: (event: Event) => {
    event.preventDefault();
    const path = field.value.trim();
    if (path) add(() => Promise.resolve({places: [path]}));
  }}, field, h('button', {}, t('page.compare')));
  const place = h('section', {class: 'compare-add'}, form, h('p', {class: 'quiet'}, t('compare.add.drop')), said,
    others.length > 0 &&
      h('ul', {class: 'start-recent', 'aria-label': t('start.recent')},
        ...others.map(one =>
          h('li', {}, h('button', {class: 'plain link', title: one.places.join('\n'), click: () =>
            add(() =>
              Promise.resolve({places: one.places})
            )}, one.title))
        )));
  place.addEventListener('dragover', event => event.preventDefault());
  place.addEventListener('drop', event => {
    event.preventDefault();
    const data = event.dataTransfer;
    if (!data) return;
    add(async () => {
      const files = await droppedFiles(data);
      if (files.length === 0) return null;
      return {
        drop: await send(files,
          done => said.replaceChildren(t('start.sending', done + 1, files.length, bytes(files[done]!.file.size)))),
      };
    });
  });
  return place;
}
