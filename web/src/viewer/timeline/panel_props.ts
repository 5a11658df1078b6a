// The properties of every part of the drawer below the timeline.
import type {Actions} from './actions';
import type {Api} from '../shell/api';
import type {Stage} from './stage';
import type {Store} from './store';

export interface PanelProps {
  api: Api;
  store: Store;
  stage: Stage;
  actions: Actions;
}
