// node viewer_trace.mjs SLICES OUT: a Chrome trace of SLICES slices on 256 threads, two deep, with three arguments each:
// what the viewer is measured on. The same number gives the same bytes.
import {closeSync, openSync, renameSync, writeSync} from 'node:fs';

const RANKS = 64, THREADS = 4, CHILDREN = 3;
const STEMS = ['forward_step', 'backward_step', 'weight_grad', 'ncclDevKernel_SendRecv', 'ncclDevKernel_AllReduce_Sum_bf16', 'aten::mm',
               'sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64', 'flash_fwd_kernel', 'optimizer.step', 'Memcpy HtoD'];
const NAMES = Array.from({length: 200}, (_, i) => `${STEMS[i % STEMS.length]}_${i}`);

const [slices, out] = [Number(process.argv[2]), process.argv[3]];
if (!slices || !out) throw new Error('usage: node viewer_trace.mjs SLICES OUT');

let seed = 0x2545f491;
const random = () => {
  seed ^= seed << 13;
  seed ^= seed >>> 17;
  seed ^= seed << 5;
  return seed >>> 1;
};

const file = openSync(out + '.part', 'w');
let text = ['{"traceEvents":['], length = 0, count = 0;
function write(line) {
  text.push(line);
  length += line.length;
  if (length < 4e6) return;
  writeSync(file, text.join('\n') + '\n');
  text = [];
  length = 0;
}
const micro = ns => `${Math.floor(ns / 1000)}.${String(ns % 1000).padStart(3, '0')}`;
const perThread = Math.floor(slices / (RANKS * THREADS));
for (let pid = 1; pid <= RANKS; ++pid)
  for (let tid = 1; tid <= THREADS; ++tid) {
    let at = 1000;
    const slice = (start, dur) => {
      const name = NAMES[random() % NAMES.length];
      write(`{"ph":"X","cat":"${tid > 2 ? 'kernel' : 'cpu_op'}","name":"${name}","pid":${pid},"tid":${pid * 10 + tid},"ts":${micro(start)},"dur":${micro(dur)},` +
            `"args":{"mb":${random() % 64},"stage":${pid % 16},"seq":${++count}}},`);
    };
    for (let made = 0; made < perThread;) {
      const inner = [];
      let end = at + 50;
      for (let k = 0; k < CHILDREN; ++k) {
        const dur = 200 + random() % 2000;
        inner.push([end, dur]);
        end += dur + 30;
      }
      slice(at, end + 20 - at);
      for (const [start, dur] of inner) slice(start, dur);
      made += 1 + CHILDREN;
      at = end + 120 + random() % 900;
    }
  }
writeSync(file, text.join('\n') + `\n{"ph":"M","name":"process_name","pid":1,"tid":0,"args":{"name":"made by viewer_trace.mjs"}}]}\n`);
closeSync(file);
renameSync(out + '.part', out);
