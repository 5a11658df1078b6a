// The width of the names at the left: by the window's width, or as someone has dragged it; kept for the next visit.
import {h, styled} from '../../dom';
import {t} from '../../i18n/i18n';
import {remember} from '../shell/remember';

const MIN_PX = 60, MAX_SHARE = 0.6, STEP_PX = 16;
let wanted = Number(remember('gutter') ?? NaN);
const byWidth = (width: number): number => (width < 560 ? 104 : width < 900 ? 150 : 214);
export const gutterOf = (width: number): number =>
  Math.round(wanted >= MIN_PX ? Math.min(wanted, Math.max(width * MAX_SHARE, MIN_PX)) : byWidth(width));

// A handle at the edge of the names of all timelines of a page; a double click gives the usual width back.
export function gutterHandle(width: () => number): {element: HTMLElement; place(gutter: number): void} {
  const element = h('div', {class: 'gutter-handle', role: 'separator', tabindex: 0, 'aria-orientation': 'vertical',
    'aria-valuemin': MIN_PX});
  const set = (px: number): void => {
    wanted = Number.isNaN(px) ? NaN : Math.round(Math.min(Math.max(px, MIN_PX), width() * MAX_SHARE));
    remember('gutter', Number.isNaN(wanted) ? '' : String(wanted));
    window.dispatchEvent(new Event('gutter'));
  };
  element.addEventListener('pointerdown', event => {
    element.setPointerCapture(event.pointerId);
    event.preventDefault();
  });
  element.addEventListener('pointermove', event => {
    if (element.hasPointerCapture(event.pointerId))
      set(event.clientX - element.parentElement!.getBoundingClientRect().left);
  });
  element.addEventListener('dblclick', () => set(NaN));
  element.addEventListener('keydown', event => {
    const by = event.key === 'ArrowRight' ? STEP_PX : event.key === 'ArrowLeft' ? -STEP_PX : 0;
    if (by === 0) return;
    event.preventDefault();
    event.stopPropagation();
    set(gutterOf(width()) + by);
  });
  return {element, place(gutter) {
    styled(element, {left: `${gutter - 5}px`});
    element.title = t('gutter.help');
    element.setAttribute('aria-label', t('gutter.help'));
    element.setAttribute('aria-valuenow', String(gutter));
    element.setAttribute('aria-valuemax', String(Math.round(width() * MAX_SHARE)));
  }};
}
