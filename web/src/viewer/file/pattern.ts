// A user searches names for a text or an expression. ASCII letters match either case. As in
// src/server/timeline/name_pattern.cc an expression runs as a set of states, so that none takes longer than expression
// × text: [a-z] [^…] \d \w \s and their capitals, dots, ( ) |, * + ?, ^ $, \ before anything else. Works on UTF-8
// bytes, as the server does.
import {refuse} from './query';

const encoder = new TextEncoder(), MOST_BYTES = 256, NOWHERE = -1;
const lower = (byte: number): number => (byte >= 65 && byte <= 90 ? byte + 32 : byte);

export type Matches = (name: string) => boolean;

const asciiLower = (text: string): string => text.replace(/[A-Z]+/g, upper => upper.toLowerCase());
export function textPattern(what: string): Matches {
  const wanted = asciiLower(what);
  return name => asciiLower(name).includes(wanted);
}

type Type = 'bytes' | 'split' | 'start' | 'end' | 'match';
interface State {
  type: Type;
  set: Uint8Array | null;
  next: number;
  other: number;
}
interface Piece {
  first: number;
  ends: [state: number, other: boolean][];
}

const setOf = (has: (byte: number) => boolean): Uint8Array =>
  Uint8Array.from({length: 256}, (_, byte) => Number(has(byte)));
const isDigit = (b: number): boolean => b >= 48 && b <= 57,
  isSpace = (b: number): boolean => b === 32 || (b >= 9 && b <= 13);
const isWord = (b: number): boolean => isDigit(b) || (lower(b) >= 97 && lower(b) <= 122) || b === 95;
const CLASSES: Record<string, (byte: number) => boolean> = {
  d: isDigit,
  D: b => !isDigit(b),
  w: isWord,
  W: b => !isWord(b),
  s: isSpace,
  S: b => !isSpace(b),
};
const escaped = (byte: number): Uint8Array => setOf(CLASSES[String.fromCharCode(byte)] ?? (b => b === byte));
const anyCase = (set: Uint8Array): Uint8Array =>
  setOf(b => set[b] === 1 || (lower(b) >= 97 && lower(b) <= 122 && set[b ^ 32] === 1));

// Parses by recursive descent over alternatives := sequence ('|' sequence)*; sequence := (atom [*+?])*.
class Parser {
  readonly states: State[] = [];
  private at = 0;
  private depth = 0;
  constructor(private readonly text: Uint8Array) {}

  parse(): number {
    const whole = this.alternatives();
    if (this.at < this.text.length) this.bad('a ) without its (');
    this.patch(whole, this.add('match'));
    return whole.first;
  }
  private bad(what: string): never {
    return refuse(400, `the expression is not complete or not known: ${what}`, '\\ before a sign means itself');
  }
  private add(type: Type, set: Uint8Array | null = null, next = NOWHERE, other = NOWHERE): number {
    return this.states.push({type, set, next, other}) - 1;
  }
  private one(type: Type, set: Uint8Array | null = null): Piece {
    const at = this.add(type, set);
    return {first: at, ends: [[at, false]]};
  }
  private patch(piece: Piece, to: number): void {
    for (const [state, other] of piece.ends) this.states[state]![other ? 'other' : 'next'] = to;
  }
  private is(sign: string, ahead = 0): boolean {
    return this.text[this.at + ahead] === sign.charCodeAt(0);
  }

  private alternatives(): Piece {
    if (++this.depth > 64) this.bad('too many ( in each other');
    let left = this.sequence();
    while (this.is('|')) {
      ++this.at;
      const right = this.sequence(), split = this.add('split', null, left.first, right.first);
      left = {first: split, ends: [...left.ends, ...right.ends]};
    }
    --this.depth;
    return left;
  }
  private sequence(): Piece {
    const whole = this.one('split'); // nothing: a split whose two ways are one
    while (this.at < this.text.length && !this.is('|') && !this.is(')')) {
      let next = this.atom();
      while (this.is('*') || this.is('+') || this.is('?'))
        next = this.repeated(next, String.fromCharCode(this.text[this.at++]!));
      this.patch(whole, next.first);
      whole.ends = next.ends;
    }
    return whole;
  }
  private repeated(piece: Piece, how: string): Piece {
    const split = this.add('split', null, piece.first);
    if (how === '?') return {first: split, ends: [...piece.ends, [split, true]]};
    this.patch(piece, split);
    return {first: how === '*' ? split : piece.first, ends: [[split, true]]};
  }
  private atom(): Piece {
    const byte = this.text[this.at++]!;
    switch (String.fromCharCode(byte)) {
      case '(': {
        if (this.is('?') && this.is(':', 1)) this.at += 2;
        const inner = this.alternatives();
        if (this.at >= this.text.length) this.bad('a ( without its )');
        ++this.at;
        return inner;
      }
      case '*':
      case '+':
      case '?':
        return this.bad(`nothing stands before ${String.fromCharCode(byte)}`);
      case '^':
        return this.one('start');
      case '$':
        return this.one('end');
      case '.':
        return this.one('bytes', setOf(() => true));
      case '[':
        return this.set();
      case '\\':
        if (this.at >= this.text.length) this.bad('\\ at the end');
        return this.one('bytes', anyCase(escaped(this.text[this.at++]!)));
      default:
        return this.one('bytes', anyCase(setOf(b => b === byte)));
    }
  }
  private set(): Piece {
    const inside = new Uint8Array(256), negated = this.is('^');
    if (negated) ++this.at;
    for (let first = true;; first = false) {
      if (this.at >= this.text.length) this.bad('a [ without its ]');
      const byte = this.text[this.at++]!;
      if (byte === 93 && !first) break;
      if (byte === 92) {
        if (this.at >= this.text.length) this.bad('\\ at the end');
        escaped(this.text[this.at++]!).forEach((has, b) => {
          if (has) inside[b] = 1;
        });
      } else if (this.at + 1 < this.text.length && this.is('-') && !this.is(']', 1)) {
        const to = this.text[this.at + 1]!;
        if (to < byte) this.bad('a range from high to low');
        inside.fill(1, byte, to + 1);
        this.at += 2;
      } else {
        inside[byte] = 1;
      }
    }
    const all = anyCase(inside);
    return this.one('bytes', negated ? setOf(b => !all[b]) : all);
  }
}

export function expressionPattern(what: string): Matches {
  const text = encoder.encode(what);
  if (text.length > MOST_BYTES) refuse(400, `an expression has at most ${MOST_BYTES} bytes`);
  const parser = new Parser(text), first = parser.parse(), {states} = parser;
  return name => runs(states, first, encoder.encode(name));
}

function runs(states: State[], first: number, name: Uint8Array): boolean {
  const seen = new Int32Array(states.length).fill(-1), todo: number[] = [];
  let now: number[] = [], next: number[] = [], found = false;
  const enter = (into: number[], state: number, at: number): void => {
    todo.push(state);
    while (todo.length > 0) {
      const s = todo.pop()!;
      if (s === NOWHERE || seen[s] === at) continue;
      seen[s] = at;
      const one = states[s]!;
      if (one.type === 'split') todo.push(one.other, one.next);
      else if (one.type === 'bytes') into.push(s);
      else if (one.type === 'match') found = true;
      else if (one.type === 'start' ? at === 0 : at === name.length) todo.push(one.next);
    }
  };
  for (let at = 0;; ++at) {
    enter(now, first, at);
    if (found || at === name.length) return found;
    next = [];
    for (const s of now) if (states[s]!.set![name[at]!]) enter(next, states[s]!.next, at + 1);
    if (found) return true;
    now = next;
  }
}
