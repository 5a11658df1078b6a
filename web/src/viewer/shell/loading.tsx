// The content of the page while the run is read, or the reason why it cannot be.
import {t} from '../../i18n/i18n';
import {bytes} from '../../format';
import type {Status} from './api';
import {count} from './numbers';
import {startOf} from './source';

export function Loading({status}: {status: Status}) {
  const {state, bytes_read: done, bytes_total: total} = status;
  if (state === 'failed')
    return (
      <main class="loading">
        <p class="logo">Stageline</p>
        <h1>{t('load.failed')}</h1>
        <p role="alert">{status.error}</p>
        {status.hint && <p class="quiet">{status.hint}</p>}
        {startOf() && (
          <p>
            <a href={startOf()!}>{t('start.back')}</a>
          </p>
        )}
      </main>
    );
  const share = state === 'reading' && total > 0 ? Math.min(done / total, 1) : state === 'reading' ? 0 : 1;
  return (
    <main class="loading">
      <p class="logo">Stageline</p>
      <h1>{status.title ? t('load.title', status.title) : t('load.reading')}</h1>
      <div
        class="progress"
        role="progressbar"
        aria-label={t('load.reading')}
        aria-valuenow={Math.round(share * 100)}
        aria-valuemin={0}
        aria-valuemax={100}>
        <i style={{width: `${share * 100}%`}} />
      </div>
      <p class="quiet">
        {state === 'reading' ? (total > 0 ? t('load.bytes', bytes(done), bytes(total)) : bytes(done))
          : t('load.preparing')}
        {status.events > 0 && ` · ${t('load.events', count(status.events))}`}
      </p>
    </main>
  );
}
