// How much longer an operation of a pipeline could take before its step ends later: `pipeline-critical-path`, which is
// asked for a step when one of its cells is pointed at.
import {frameOf} from '../../data/frame';
import type {Report} from '../../data/report';
import {duration} from '../../format';
import {t} from '../../i18n/i18n';
import type {Api} from '../shell/api';
import {deskOf} from './ask';

const CODES: Readonly<Record<string, string>> = {'forward': 'F', 'backward': 'B', 'input grad': 'I',
  'weight grad': 'W'};

export interface Operation {
  step: number;
  rank: number;
  code: string; // of its kind: F, B, I, W
  microBatch: number;
  chunk: number;
}
const keyOf = ({rank, code, microBatch, chunk}: Operation): string =>
  `${rank} ${code}${microBatch}.${Math.max(chunk, 0)}`;

// The words of an operation's slack; '' where there is none, or as long as it is on its way: `came` is called then.
export function makeSlack(api: Api): (of: Operation, came: () => void) => string {
  const steps = new Map<number, Map<string, number>>();
  return (of, came) => {
    if (REPORT || of.microBatch < 0 || !Object.values(CODES).includes(of.code)) return '';
    const known = steps.get(of.step);
    if (known) {
      const slack = known.get(keyOf(of));
      return slack === undefined ? '' : slack === 0 ? t('slack.none') : t('slack', duration(slack));
    }
    const found = new Map<string, number>();
    steps.set(of.step, found);
    deskOf(api).answer('pipeline-critical-path', {step: String(of.step)}, () => undefined).then(({tables}) => {
      for (const row of frameOf({tables} as unknown as Report, 'slack-cells')?.rows ?? [])
        found.set(
          keyOf({step: of.step, rank: row.num('rank'), code: CODES[row.text('type')] ?? '',
            microBatch: row.num('micro_batch'), chunk: row.num('chunk')}),
          row.num('slack_ns'),
        );
      came();
    }, () => undefined);
    return '';
  };
}
