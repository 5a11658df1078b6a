// Waits until the user is idle: no key or button is held, and nothing was done for a moment. Rebuilding the page waits
// for it.
const PAUSE_MS = 400; // longer than a pause between two turns of a wheel, and than the address takes to follow

const held = new Set<string | number>();
let last = -Infinity;

export function watchInput(): void {
  const on = <K extends keyof WindowEventMap>(kind: K, take: (event: WindowEventMap[K]) => void): void =>
    window.addEventListener(kind, event => {
      take(event);
      last = performance.now();
    }, {capture: true, passive: true});
  on('keydown', event => held.add(event.code));
  on('keyup', event => held.delete(event.code));
  on('pointerdown', event => held.add(event.pointerId));
  on('pointerup', event => held.delete(event.pointerId));
  on('pointercancel', event => held.delete(event.pointerId));
  on('wheel', () => undefined);
  on('blur', () => held.clear());
}

export async function quiet(): Promise<void> {
  while (held.size > 0 || performance.now() - last < PAUSE_MS)
    await new Promise(done => setTimeout(done, PAUSE_MS / 4));
}
