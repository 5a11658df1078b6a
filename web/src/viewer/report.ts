// The script of a report: nothing can be fetched, and there is no server to ask. A worker runs it too.
import {makeAnswers} from './answers/page';
import {makeCompare} from './compare/page';
import {fileSource} from './file/source';
import {isWorker, serveWorker} from './file/worker';
import {makeFlamePage} from './flame/page';
import {start} from './main';
import {makeOverview} from './overview/page';
import {makePipeline} from './pipeline/page';
import {makePlan} from './plan/page';
import * as picture from './shell/picture';
import {makeTimeline} from './timeline/timeline_page';

if (isWorker()) serveWorker();
else
  void start({source: fileSource(),
    pages: {overview: makeOverview, pipeline: makePipeline, timeline: makeTimeline, flame: makeFlamePage,
      answers: makeAnswers, plan: makePlan, compare: makeCompare}, picture: () => Promise.resolve(picture)});
