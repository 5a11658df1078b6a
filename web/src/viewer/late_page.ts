// A page whose script comes when the page is first shown. Until then its place says that it is on its way, and its
// address is the one that was asked for.
import {h} from '../dom';
import {t} from '../i18n/i18n';
import {failure, working} from './answers/working';
import type {Page} from './shell/page';
import type {MakePage} from './shell/shell';

export const latePage = (load: () => Promise<MakePage>): MakePage => shell => {
  let address = {rest: '', query: ''}, made: Page | null = null, isShown = false;
  const place = h('div', {tabindex: -1});
  async function fetch(): Promise<void> {
    place.replaceChildren(h('main', {class: 'sheet'}, working(t('answers.working'), null)));
    try {
      made = (await load())(shell);
    } catch (error) {
      return place.replaceChildren(h('main', {class: 'sheet'}, failure(error, () => void fetch())));
    }
    const hasFocus = place === document.activeElement;
    made.element.classList.add(...place.classList);
    made.element.hidden = place.hidden;
    place.replaceWith(made.element);
    made.restyle();
    if (isShown) made.show(address);
    if (hasFocus) page.focus!();
    shell.moved();
  }
  const page: Page = {
    get element() {
      return made?.element ?? place;
    },
    show(route) {
      isShown = true;
      if (made) return made.show(route);
      address = route ?? address;
    },
    hide() {
      isShown = false;
      made?.hide?.();
    },
    address: () => made?.address() ?? address,
    restyle: () => made?.restyle(),
    keys: () => made?.keys?.() ?? [],
    settled: () => made !== null && made.settled?.() !== false,
    focus() {
      if (made?.focus) made.focus();
      else (page.element.querySelector<HTMLElement>('h1[tabindex], h2[tabindex]') ?? page.element).focus({
          preventScroll: true,
        });
    },
  };
  void fetch();
  return page;
};
