// Every part of the drawer below the timeline has these properties.
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
