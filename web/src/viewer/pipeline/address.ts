// The page in the address: the report's own words for step, replica, window and cell, and what only this page has.
import {fromHash, toHash, type State} from '../../state';
import {inAddress} from '../shell/described';
import {plainQuery} from '../shell/route';
import {hasMany} from '../../chart/layout';
import {openable, ownModel, type Pipe} from './pipe';
import {slowestReplica} from './step_facts';

export function toQuery(pipe: Pipe): string {
  const {app, recorded} = pipe, {state} = app;
  const query = new URLSearchParams(toHash(state, ownModel(pipe), recorded.cells, recorded.report.parts).slice(1));
  if (state.beside !== null) query.set('beside', String(state.beside));
  if (state.open.size > 0)
    query.set('open', state.open.size === openable(app).length ? 'all' : [...state.open].join(','));
  if (state.full.size > 0) query.set('full', [...state.full].join(','));
  if (pipe.scene) query.set('scene', pipe.scene);
  if (pipe.bench.now) query.set('if', pipe.bench.now);
  if (pipe.bench.kept) query.set('kept', pipe.bench.kept);
  for (const [name, value] of Object.entries(inAddress(pipe.bench.described))) query.set(name, value);
  if (!state.causes) query.set('causes', 'off');
  if (!pipe.both) query.set('other', 'off');
  else if (pipe.other && pipe.other.shift !== 0 && pipe.other.app.state.step !== null)
    query.set('other', String(pipe.other.app.state.step));
  return plainQuery(query);
}

export function stateOf(pipe: Pipe, query: string): State {
  const {app, recorded} = pipe, fields = new URLSearchParams(query), {cells, report} = recorded, model = ownModel(pipe),
    state = fromHash(query, model, cells, report.parts);
  const stages = openable(app), open = fields.get('open'), beside = fields.get('beside');
  state.folded = stages.length > 0;
  const many = hasMany(report.parts);
  if (many) state.dp = fields.has('dp') ? state.dp : null; // stages as sums, of all replicas
  else {
    if (!fields.has('dp')) state.dp = slowestReplica(recorded, state.step)?.dp ?? state.dp; // what all others wait for
    state.dp ??= model.dps[0] ?? null;
  }
  state.open = new Set(
    open === 'all' || (fields.get('dp') === 'all' && !many) ? stages
      : (open ?? '').split(',').filter(Boolean).map(Number).filter(stage => stages.includes(stage)),
  );
  state.full = new Set(
    (fields.get('full') ?? '').split(',').filter(Boolean).map(Number).filter(stage => state.open.has(stage)),
  );
  if (beside !== null && model.steps.some(step => step.step === Number(beside))) state.beside = Number(beside);
  if (!fields.has('theory') && pipe.shell.run.file?.theory === false) state.theory = false;
  state.causes = fields.get('causes') !== 'off';
  return state;
}
