// Keys. W S A D act while held, faster with time; positions, not letters, so that layouts and input methods do not
// matter. Keys typed into fields are left alone.
import {t} from '../../i18n/i18n';
import {takesText} from '../../dom';
import {fit, pan, zoom} from '../../chart/viewport';
import type {Actions} from './actions';
import {timeAt} from './scene';
import type {Stage} from './stage';
import type {Store} from './store';

type Move = 'in' | 'out' | 'left' | 'right';
const HELD: Record<string, Move> = {KeyW: 'in', KeyS: 'out', KeyA: 'left', KeyD: 'right'};
const ARROWS: Record<string, Move> = {ArrowLeft: 'left', ArrowRight: 'right'};
const FIRST = 0.2; // of a press, before it counts as held

// `active`: true while the timeline is visible; otherwise it ignores keys.
export function listenToKeys(store: Store, stage: Stage, actions: Actions, active: () => boolean): void {
  const held = new Map<string, {move: Move; since: number}>();
  const calm = matchMedia('(prefers-reduced-motion: reduce)');
  let last = 0, lastFit = -Infinity;

  function act(move: Move, amount: number): void {
    const {view} = store.state, scene = stage.scene();
    const at = stage.pointed.x >= scene.gutter ? timeAt(scene, stage.pointed.x) : (view.t0 + view.t1) / 2;
    if (move === 'in' || move === 'out') store.setView(zoom(view, Math.exp(move === 'in' ? -amount : amount), at));
    else store.setView(pan(view, (move === 'left' ? -amount : amount) * 0.6));
    if ((move === 'left' || move === 'right') && view.t0 <= store.home.t0 && view.t1 >= store.home.t1 &&
      store.state.message !== t('held.home')) store.say(t('held.home'));
  }
  function tick(now: number): boolean {
    const elapsed = Math.min(now - last, 50) / 1000;
    last = now;
    for (const {move, since} of held.values())
      if (now - since > 150) act(move, elapsed * Math.min(1 + (now - since) / 600, 4));
    return held.size > 0;
  }
  function hold(code: string, move: Move): void {
    if (held.has(code)) return;
    act(move, FIRST);
    if (calm.matches) return;
    last = performance.now();
    held.set(code, {move, since: last});
    if (held.size === 1) stage.onFrame(tick);
  }

  // "F" brings the chosen thing to the middle; again, it fills the window.
  function focus(): void {
    const {selected, area, view} = store.state, now = performance.now(), again = now - lastFit < 1500;
    lastFit = now;
    const shift = selected ? store.shiftOf(selected.lane) : 0;
    const [t0, t1] = selected ? [selected.start + shift, selected.start + shift + Math.max(selected.dur, 1)]
      : area ? [area.t0, area.t1]
      : [NaN, NaN];
    if (Number.isNaN(t0)) return;
    if (selected) stage.showLane(selected.lane);
    const span = view.t1 - view.t0, middle = (t0 + t1) / 2;
    // Where all is in sight nothing can be brought to its middle.
    const whole = view.t0 <= store.home.t0 && view.t1 >= store.home.t1;
    store.jump(
      again || whole || t1 - t0 > span ? fit(t0 - (t1 - t0) * 0.1, t1 + (t1 - t0) * 0.1)
        : {t0: middle - span / 2, t1: middle + span / 2},
    );
  }

  function pressed(event: KeyboardEvent): boolean {
    const move = HELD[event.code] ?? ARROWS[event.code];
    if (move) {
      if (ARROWS[event.code] && document.activeElement?.closest('.panel')) return false;
      hold(event.code, move);
      return true;
    }
    switch (event.code) {
      case 'ArrowUp':
        actions.otherLane(-1);
        return true;
      case 'ArrowDown':
        actions.otherLane(1);
        return true;
      case 'PageUp':
        stage.scroller.scrollTop -= stage.scroller.clientHeight * 0.8;
        return true;
      case 'PageDown':
        stage.scroller.scrollTop += stage.scroller.clientHeight * 0.8;
        return true;
      case 'KeyF':
        focus();
        return true;
      case 'KeyM':
        if (event.shiftKey || !store.state.selected) actions.mark();
        else actions.rangeOfSlice();
        return true;
      case 'KeyQ':
        actions.togglePanel();
        return true;
      case 'KeyC':
        actions.holdForCompare();
        return true;
      case 'KeyL':
        actions.align('start');
        return true;
      case 'KeyR':
        actions.align('end');
        return true;
      case 'KeyE':
        actions.evidence(event.shiftKey ? -1 : 1);
        return true;
      case 'KeyX':
        store.change({flows: !store.state.flows});
        return true;
      case 'KeyN':
        actions.findNext(event.shiftKey ? -1 : 1);
        return true;
      case 'Backspace':
        store.undoView();
        return true;
      case 'Equal':
      case 'NumpadAdd':
        actions.rowHeight(1);
        return true;
      case 'Minus':
      case 'NumpadSubtract':
        actions.rowHeight(-1);
        return true;
    }
    switch (event.key) {
      case '0':
        store.jump(store.home);
        return true;
      case ',':
        actions.neighbour(-1);
        return true;
      case '.':
        actions.neighbour(1);
        return true;
      case '[':
        actions.alongFlow(-1);
        return true;
      case ']':
        actions.alongFlow(1);
        return true;
      case '/':
        actions.open('search');
        return true;
      case 'Escape':
        actions.clear();
        return true;
    }
    if (/^[1-9]$/.test(event.key)) {
      const step = store.run.steps[Number(event.key) - 1];
      if (step) store.jump(fit(step.start_ns, step.end_ns));
      return !!step;
    }
    return false;
  }

  document.addEventListener('keydown', event => {
    if (!active() || event.isComposing || document.querySelector('dialog[open]')) return;
    const command = event.ctrlKey || event.metaKey;
    if (command && event.code === 'KeyP' || event.key === 'F1') {
      event.preventDefault();
      actions.open(event.shiftKey || event.key === 'F1' ? 'commands' : 'lanes');
      return;
    }
    if (command && event.code === 'KeyF' && !event.shiftKey) return; // the browser's own
    const target = event.target as HTMLElement;
    if (command && event.key === '0') {
      event.preventDefault();
      store.jump(store.home);
      return;
    }
    if (command || event.altKey) return;
    if (takesText(target)) return;
    if (pressed(event)) event.preventDefault();
  });
  document.addEventListener('keyup', event => {
    held.delete(event.code);
  });
  window.addEventListener('blur', () => held.clear());
}
