// Colours of the page as variables of its root: those of src/model/palette.cc, as the report and the server send them.
import type {Palette} from './data/report';
import {styled} from './dom';

export type Theme = 'light' | 'dark';

export function applyTheme(palettes: Record<Theme, Palette>, theme: Theme): void {
  const palette = palettes[theme], root = document.documentElement;
  root.dataset['theme'] = theme;
  const {group, kernel, ...plain} = palette;
  styled(root, Object.fromEntries(Object.entries(plain).map(([name, value]) => ['--' + name, value])));
  group.forEach((colour, i) => root.style.setProperty(`--group-${i}`, colour));
  kernel.forEach((colour, i) => root.style.setProperty(`--kernel-${i}`, colour));
}
