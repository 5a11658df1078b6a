// A tooltip for words: one element, over whatever is pointed at.
import {h, styled, type Child} from '../dom';

export interface TextTip {
  element: HTMLElement;
  showText(text: string, over: Element): void;
  place(x: number, y: number, ...children: Child[]): void; // window pixels of what is pointed at
  hide(): void;
}

export function makeTextTip(): TextTip {
  const element = h('div', {class: 'tip', role: 'tooltip', id: 'tip', hidden: true});
  return {
    element,
    place(x, y, ...children) {
      element.replaceChildren(...children.filter((child): child is Node | string => !!child));
      element.hidden = false;
      const box = element.getBoundingClientRect();
      const left = x + 14 + box.width > innerWidth ? x - 14 - box.width : x + 14;
      const top = y + 16 + box.height > innerHeight ? y - 12 - box.height : y + 16;
      styled(element, {left: `${Math.max(4, left)}px`, top: `${Math.max(4, top)}px`});
    },
    showText(text, over) {
      if (!text) return;
      const box = over.getBoundingClientRect();
      this.place(box.left - 10, box.bottom - 8, h('div', {}, text));
    },
    hide() {
      element.hidden = true;
    },
  };
}
