import {h, type Child} from './dom';

// A long name is shown with its function first. Names are cut in the middle, because kernels differ at their ends.

// "torch/nn/module.py(1773): _call_impl" → "_call_impl · module.py:1773";
// "void at::native::vectorized_kernel<4, …>(int)" → "vectorized_kernel<4, …>(int)"
export function functionFirst(name: string): string {
  const python = /^(?:.*[/\\])?([^/\\]+)\((\d+)\): (.+)$/.exec(name);
  if (python) return `${python[3]} · ${python[1]}:${python[2]}`;
  const scope = /^void (?:(?:\w+|\(anonymous namespace\))::)+(?=[a-zA-Z_]{3})/.exec(name);
  return scope ? name.slice(scope[0].length) : name.replace(/^void (?=\w)/, '');
}

const TAIL = 0.35; // of the letters that fit, these are the last ones
export function cutMiddle(text: string, letters: number): string {
  if (text.length <= letters) return text;
  const tail = letters >= 10 ? Math.floor(letters * TAIL) : 0;
  return `${text.slice(0, letters - tail)}…${tail > 0 ? text.slice(-tail) : ''}`;
}

// The same where the browser cuts, at any width: the whole name, whose last letters keep their place.
const KEPT = 14;
export const cutByWidth = (name: string): Child[] =>
  name.length > 2 * KEPT
    ? [h('span', {class: 'mid'}, h('span', {}, name.slice(0, -KEPT)), h('span', {}, name.slice(-KEPT)))] : [name];
