// Marks: times with a note, kept in the address and next to the run.
import {t} from '../../i18n/i18n';
import {exactMs} from '../../format';
import type {PanelProps} from './panel_props';

export function MarksPanel({store, actions}: PanelProps) {
  const {marks} = store.state, {notes} = store;
  const file = notes?.file.split('/').pop() ?? '';
  const where = notes?.keeps ? t('marks.kept', file)
    : notes?.why_not ? t(`marks.${notes.why_not}`, file) : t('marks.address');
  if (marks.length === 0)
    return (
      <p class="quiet hint">
        {t('marks.none')} {where} <button class="pill" onClick={() => actions.mark()}>{t('cmd.mark')}</button>
      </p>
    );
  const change = (i: number, text: string): void =>
    store.change({marks: store.state.marks.map((mark, at) => (at === i ? {...mark, text} : mark))});
  return (
    <>
      <table class="marks">
        <thead>
          <tr>
            <th class="text">{t('marks.time')}</th>
            <th>{t('marks.since')}</th>
            <th class="text">{t('marks.note')}</th>
            <td />
          </tr>
        </thead>
        <tbody>
          {marks.map((mark, i) => (
            <tr>
              <td class="text">
                <button
                  class="plain link"
                  onClick={() => {
                    const {t0, t1} = store.state.view, span = t1 - t0;
                    store.jump({t0: mark.t - span / 2, t1: mark.t + span / 2});
                  }}>
                  {exactMs(mark.t)}
                </button>
              </td>
              <td>{i > 0 ? `+${exactMs(mark.t - marks[i - 1]!.t)}` : ''}</td>
              <td class="text">
                <input
                  type="text"
                  maxLength={80}
                  aria-label={t('marks.note')}
                  value={mark.text}
                  placeholder={String(i + 1)}
                  onInput={event => change(i, event.currentTarget.value)} />
              </td>
              <td>
                <button
                  class="plain link"
                  onClick={() => store.change({marks: store.state.marks.filter(one => one !== mark)})}>
                  {t('marks.remove')}
                </button>
              </td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="quiet hint" title={notes?.file}>{where}</p>
    </>
  );
}
