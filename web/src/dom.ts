// Elements in one call: h('p', {class: 'lead'}, 'text', child). Text is always text, never markup.
export type Child = Node | string | null | undefined | false;
type Props = Record<string, string | number | boolean | null | undefined | ((event: never) => void)>;

function apply(element: Element, props: Props): void {
  for (const [name, value] of Object.entries(props)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === 'function') element.addEventListener(name, value as EventListener);
    else element.setAttribute(name, value === true ? '' : String(value));
  }
}

export function h<K extends keyof HTMLElementTagNameMap>(tag: K, props: Props = {},
  ...children: Child[]): HTMLElementTagNameMap[K]
{
  const element = document.createElement(tag);
  apply(element, props);
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

// Text for readers of the screen alone, where a column's bars need no head.
export const unseen = (text: string): HTMLElement => h('span', {class: 'live'}, text);

export function svg(tag: string, props: Props = {}, ...children: Child[]): SVGElement {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  apply(element, props);
  element.append(...children.filter((child): child is Node | string => !!child));
  return element;
}

// Style attributes are refused by the page's security policy; properties are not.
export function styled<E extends HTMLElement>(element: E, style: Record<string, string>): E {
  for (const [name, value] of Object.entries(style)) element.style.setProperty(name, value);
  return element;
}

// Returns true if keys are typed into this. The field of a dialog that has just been closed keeps the focus for a
// moment: it takes none.
export const takesText = (target: HTMLElement): boolean =>
  (/^(INPUT|TEXTAREA|SELECT)$/.test(target.tagName) || target.isContentEditable) &&
  target.closest('dialog:not([open])') === null;
