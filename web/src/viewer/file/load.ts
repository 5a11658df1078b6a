// Decides which lanes of a report are read, and reads others when a question is about them: a page that opens reads
// only the visible ones.
//
//   question ──▶ need(lanes) ──▶ their groups, one after the other: unpack, read, lay out in rows ──▶ answer
//                                 (lanes that lie together)
import {ColumnReader, fail, type Arrays} from './columns';
import {buildRows, type Store} from './lanes';
import {release} from '../shell/wire';
import {unzip} from './unpack';

// The pieces of the lanes [first, last], each gzip.
export interface Group {
  first: number;
  last: number;
  pieces: Uint8Array<ArrayBuffer>[];
}

export class Loader {
  private readonly groupOf: Uint32Array; // by lane
  private readonly reading: (Promise<void> | undefined)[]; // by group; none: it was not requested
  private last: Promise<void> = Promise.resolve();

  constructor(private readonly store: Store, private readonly groups: readonly Group[],
    private readonly arrays: Arrays)
  {
    const {lanes} = store;
    this.groupOf = new Uint32Array(lanes.length);
    this.reading = groups.map(() => undefined);
    let next = 0;
    groups.forEach(({first, last}, g) => {
      if (first !== next || last < first || last >= lanes.length) fail();
      this.groupOf.fill(g, first, next = last + 1);
    });
    if (next !== lanes.length) fail();
  }

  // Resolves when these lanes can be asked about; rejects where their part of the report is damaged.
  async need(lanes: readonly number[]): Promise<void> {
    const groups = new Set(lanes.map(lane => this.groupOf[lane]!));
    await Promise.all([...groups].map(group => this.reading[group] ?? this.begin(group)));
  }
  needAll(): Promise<void> {
    return this.need(this.groups.map(group => group.first));
  }
  groupsRead(): number {
    return this.reading.filter(one => one !== undefined).length;
  }

  private begin(group: number): Promise<void> {
    return this.reading[group] = this.last = this.last.catch(() => undefined).then(() =>
      this.read(this.groups[group]!)
    );
  }
  private async read({first, last, pieces}: Group): Promise<void> {
    const reader = new ColumnReader(this.store.lanes, this.store.bases, first, last, this.arrays);
    for (let piece = pieces.shift(); piece !== undefined; piece = pieces.shift()) { // what is read is not kept
      const bytes = new Uint8Array(await unzip(piece));
      reader.piece(bytes);
      release(bytes);
    }
    reader.finish();
    for (let lane = first; lane <= last; ++lane) buildRows(this.store, this.store.lanes[lane]!);
  }
}
