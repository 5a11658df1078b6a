// Arrows between slices: those of the selected slice always, all of the window when asked for.
import {listOf, type Api} from '../shell/api';
import {timeAt, visibleRows, type Scene} from './scene';
import type {Store} from './store';
import {f64, u32, u8, type Column} from '../shell/wire';

export interface Flow {
  from: End;
  to: End;
}
export interface End {
  lane: number;
  row: number;
  t: number;
}

interface Header {
  columns: Column[];
  complete: boolean;
}
const LIMIT = 2000;

export class Flows {
  list: Flow[] = [];
  selected: Flow[] = []; // of the selected slice; its panel fills them in
  complete = true;
  private key = '';
  private controller: AbortController | null = null;
  constructor(private readonly api: Api, private readonly store: Store, private readonly ready: () => void) {}

  busy(): boolean {
    return this.controller !== null;
  }

  plan(scene: Scene): void {
    if (!this.store.state.flows) {
      if (this.list.length > 0) this.list = [];
      this.key = '';
      return;
    }
    const lanes = new Set<number>();
    for (const {row} of visibleRows(scene)) if (row.lane >= 0) lanes.add(row.lane);
    const {view} = scene, key = `${view.t0},${view.t1},${[...lanes].join()}`;
    if (key === this.key || this.controller) return;
    this.key = key;
    this.controller = new AbortController();
    const margin = timeAt(scene, 40) - timeAt(scene, 0);
    this.api.wire<Header>('flows', {lanes: listOf([...lanes]), t0: view.t0 - margin, t1: view.t1 + margin,
      limit: LIMIT}, this.controller.signal)
      .then(wire => {
        const [fl, fr, ft] = [u32(wire, 'from_lane'), u8(wire, 'from_row'), f64(wire, 'from_t')];
        const [tl, tr, tt] = [u32(wire, 'to_lane'), u8(wire, 'to_row'), f64(wire, 'to_t')];
        this.complete = wire.header.complete;
        this.list = Array.from(fl,
          (_, i): Flow => ({from: {lane: fl[i]!, row: fr[i]!, t: ft[i]!}, to: {lane: tl[i]!, row: tr[i]!, t: tt[i]!}}));
      })
      .catch(() => {
        this.list = [];
      })
      .finally(() => {
        this.controller = null;
        this.ready();
      });
  }
}
