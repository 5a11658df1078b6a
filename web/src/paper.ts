// Paper: the page is laid out for it, and whatever draws on a canvas draws anew at that size, all of it. The browser
// gives no frames while it prints, so that happens at once.
const redrawn = new Map<Element, () => void>();

export const PAPER_RATIO = 2; // device pixels per CSS pixel
export const MAX_PAPER_PX = 12000; // of one canvas: CSS pixels, below what every browser draws

export const onPaper = (): boolean => document.documentElement.classList.contains('paper');

// `redraw` lays `element` out and paints it, when the page goes to paper and when it comes back.
export function redrawForPaper(element: Element, redraw: () => void): void {
  redrawn.set(element, redraw);
}

export function setPaper(on: boolean): void {
  if (on === onPaper()) return;
  document.documentElement.classList.toggle('paper', on);
  for (const [element, redraw] of redrawn)
    if (!element.isConnected) redrawn.delete(element);
    else if (element.getClientRects().length > 0) redraw();
}

// The browser's own Print lays out, too. Some browsers send events, others only change the medium.
export function watchPaper(): void {
  window.addEventListener('beforeprint', () => setPaper(true));
  window.addEventListener('afterprint', () => setPaper(false));
  window.matchMedia('print').addEventListener('change', medium => setPaper(medium.matches));
}
