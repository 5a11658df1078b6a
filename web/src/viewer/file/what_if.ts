// What-if of a report: the program's own replay as WebAssembly, and the run's steps for it, both in the file
// (src/wasm).
import {unpack} from './unpack';

interface Program {
  memory: WebAssembly.Memory;
  _initialize?(): void;
  room(bytes: number): number;
  open(): number;
  ask(): number;
  answer(): number;
  answer_bytes(): number;
}
export type AskWhatIf = (target: string) => {status: number; body: ArrayBuffer};

// Its library asks the system only to say why it gives up: nothing is there to be asked.
const nothing = (module: WebAssembly.Module): WebAssembly.Imports => {
  const imports: WebAssembly.Imports = {};
  for (const {module: from, name} of WebAssembly.Module.imports(module)) (imports[from] ??= {})[name] = () => 8;
  return imports;
};

export async function startWhatIf(program: ArrayBuffer, model: ArrayBuffer): Promise<AskWhatIf> {
  const module = await WebAssembly.compile(program),
    its = (await WebAssembly.instantiate(module, nothing(module))).exports as unknown as Program;
  its._initialize?.();
  // Its memory may move whenever it asks for more.
  const hand = (bytes: Uint8Array): void => {
    const at = its.room(bytes.length);
    new Uint8Array(its.memory.buffer, at, bytes.length).set(bytes);
  };
  hand(new Uint8Array(model));
  if (!its.open()) throw new Error('what-if: the model in this file is not whole');
  return target => {
    hand(new TextEncoder().encode(target));
    const status = its.ask(), at = its.answer();
    return {status, body: its.memory.buffer.slice(at, at + its.answer_bytes())};
  };
}

// Taken from the page once the browser has read it.
export async function whatIfOfPage(): Promise<AskWhatIf> {
  const of = async (name: string): Promise<ArrayBuffer> =>
    unpack(document.querySelector(`script[data-what-if="${name}"]`)?.textContent ?? '');
  const [program, model] = await Promise.all([of('program'), of('model')]);
  return startWhatIf(program, model);
}
