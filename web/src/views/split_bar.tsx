// A span as one bar that adds up: every part is as wide as its share, without seams or text. A part's name is inside if
// it fits, as measured; the others are listed below.
import {useLayoutEffect, useRef} from 'preact/hooks';
import {percent, percents} from '../format';
import {termOf} from './glossary';

// `words`: said below instead of the label. `figure`: the name under which other outputs give the number
// (docs/figures.md).
export interface BarPart {
  id: string;
  kind: string;
  share: number;
  label: string;
  words?: string;
  term?: string; // what its definition stands under, where that is not the id
  figure?: string;
}

const PAD = 13, TIGHT = 6; // around the text, and at least

function fit(bar: HTMLElement, list: HTMLElement | null): void {
  for (const part of bar.querySelectorAll<HTMLElement>('.part')) {
    const room = part.clientWidth,
      [number, name] = [part.querySelector('b')!.offsetWidth, part.querySelector('span')!.offsetWidth];
    const whole = number + name + 9 + 2 * TIGHT <= room;
    part.classList.toggle('short', !whole && number + 2 * TIGHT <= room);
    part.classList.toggle('thin', !whole && number + 2 * TIGHT > room);
    part.style.setProperty('--pad',
      `${Math.max(TIGHT, Math.min(PAD, (room - number - (whole ? name + 9 : 0)) / 2))}px`);
    list?.querySelector(`[data-part="${part.dataset['part']!}"]`)?.classList.toggle('in-bar', whole);
  }
  list?.classList.toggle('none', !list.querySelector('li:not(.in-bar)'));
}

// Shares below 0 reduce the time: they have no width, and are listed below. `least`: smaller shares are not listed.
// `brief`: nothing is listed below.
export function SplitBar(
  {parts, aria, rest, least = 0.0005, brief = false}: {parts: readonly BarPart[]; aria: string; rest?: string;
    least?: number; brief?: boolean},
) {
  const bar = useRef<HTMLDivElement>(null), list = useRef<HTMLUListElement>(null);
  const said = parts.filter(part => Math.abs(part.share) >= least), drawn = parts.filter(part => part.share > 0);
  const whole = Math.max(1, drawn.reduce((sum, part) => sum + part.share, 0));
  useLayoutEffect(() => {
    fit(bar.current!, list.current);
    const watch = new ResizeObserver(() => {
      if (bar.current) fit(bar.current, list.current);
    });
    watch.observe(bar.current!);
    return () => watch.disconnect();
  });
  const printed = new Map(percents(parts.map(part => part.share)).map((text, i) => [parts[i]!.id, text]));
  const number = (part: BarPart): string => printed.get(part.id) ?? percent(part.share);
  const words = (part: BarPart): string => `${number(part)} ${part.label}`;
  return (
    <div class="span">
      <div class="split" role="img" aria-label={aria} ref={bar}>
        {drawn.map(part => (
          <div
            class={`part ${part.kind}`}
            data-part={part.id}
            data-figure={part.figure}
            title={[part.words ?? words(part), part.figure ?? termOf(part.term ?? part.id)].filter(Boolean).join('\n')}
            style={{width: `${part.share / whole * 100}%`}}>
            <b>{number(part)}</b>
            <span>{part.label}</span>
          </div>
        ))}
      </div>
      {!brief && said.length > 0 && (
        <ul class="small" aria-label={rest} ref={list}>
          {said.map(part => (
            <li data-part={part.id} data-figure={part.figure}>
              <i class={`swatch part ${part.kind}`} aria-hidden="true" />
              {words(part)}
            </li>
          ))}
        </ul>
      )}
    </div>
  );
}
