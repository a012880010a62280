// Migrations of datasets between backends.
import { html } from '../vendor/preact.js';
import { call, datasetsWith, may, usePoll, useSession } from '../api.js';
import { Action, Facts, Loaded, Table, Tag, addressOf } from '../ui.js';
import { Chart } from '../charts.js';
import { bytes, command, number, span, time } from '../format.js';
import { numberIn } from './datasets.js';

const kPhases = {
  created: 'recorded; nothing was done yet', prepare: 'both sides are made ready', backfill: 'the dataset is copied while it serves',
  verify: 'both sides are compared', ready: 'the copy is kept current until somebody asks for the cutover', cutover: 'the other side takes over',
  reversible: 'the target serves, and the source is kept current: the way back is open', finishing: 'the source is being removed',
  aborting: 'the target is being removed', finished: 'done', aborted: 'given up',
};
const kLimits = [
  { name: 'units_per_s', label: 'Units copied a second at most', hint: '0: no limit; empty: as it is' },
  { name: 'bytes_per_s', label: 'Bytes copied a second at most', hint: '0: no limit; empty: as it is' },
  { name: 'max_read_us', label: 'Copy less while a read takes longer than this many µs', hint: '0: do not measure; empty: as it is' },
  { name: 'share', label: 'Percent of its time that each copying thread works', hint: '1 to 100; empty: as it is' },
];

/// What each command of an operator does; `sure`: it cannot be taken back, or changes who serves.
const kCommands = {
  start: { label: 'Start', about: 'Copies the dataset, keeps the copy current, and compares both sides. The source serves on.' },
  resume: { label: 'Resume', about: 'Goes on after a pause, or where a process that died has stopped.' },
  verify: { label: 'Compare again', about: 'Compares both sides. Nothing changes who serves.' },
  cutover: { label: 'Cut over', sure: true, about: 'Lets the target serve; writes wait for a moment. The source is kept current, so that there is a way back.' },
  reverse: { label: 'Reverse', sure: true, about: 'Lets the source serve again; the target is kept current.' },
  rollback: { label: 'Roll back', sure: true, danger: true, about: 'Lets the source serve again, and removes the target.' },
  finish: { label: 'Finish', sure: true, danger: true, about: 'Removes the source. There is no way back any more.' },
  cancel: { label: 'Cancel', sure: true, danger: true, about: 'Removes the target, and leaves everything as it was.' },
  pause: { label: 'Pause', about: 'Suspends copying until it is resumed; writes are recorded meanwhile.' },
  throttle: { label: 'Throttle', about: 'Changes the limits of copying, at once.', fields: kLimits },
  resolve: { label: 'Resolve', sure: true, danger: true, about: 'Says which side is right, where both differ and one may have lost writes.',
    fields: [{ name: 'keep', label: 'The backend that is right', required: true }] },
  abandon: { label: 'Abandon', sure: true, danger: true, about: 'Ends the migration without a side whose hosts will never be back.',
    fields: [{ name: 'gone', label: 'The backend that is gone', required: true }] },
};

function given(values) {
  return Object.fromEntries(Object.entries(values).filter(([, value]) => value !== '' && value !== false)
    .map(([name, value]) => [name, typeof value === 'string' ? numberIn(value) : value]));
}
/// The same as fields of a request.
function fieldsOf(values) {
  const { to: target, ...others } = given(values);
  return { target, ...others };
}
function optionWords(values) {
  return Object.entries(given(values)).flatMap(([name, value]) => (value === true ? [`--${name}`] : [`--${name.replaceAll('_', '-')}`, value]));
}
async function migrate(dataset, verb, fields) {
  return (await call('migrate', { dataset, command: verb, ...fields })).status;
}
function planOf(status) {
  return [`It is possible. The migration is in phase ${status.phase}: ${kPhases[status.phase] || ''}.`, `${status.truth} serves now.`];
}

function Command({ dataset, verb, shown, onDone }) {
  const known = kCommands[verb];
  return html`<${Action} label=${known.label} title=${`${known.label}: ${dataset}`} about=${known.about} fields=${known.fields || []} shown=${shown} onDone=${onDone}
    kind=${known.danger ? 'danger' : ''} name=${known.sure ? dataset : undefined}
    line=${(values) => command(`kv migrate ${verb}`, [dataset], optionWords(values))}
    plan=${async (values) => planOf(await migrate(dataset, verb, { ...fieldsOf(values), dry_run: true }))}
    run=${(values) => migrate(dataset, verb, fieldsOf(values)).then(() => undefined)} />`;
}

function Create({ dataset, onDone, shown = true }) {
  const fields = [
    ...(dataset ? [] : [{ name: 'dataset', label: 'Dataset', required: true }]),
    { name: 'to', label: 'To the backend', hint: 'mysql or rocksdb', required: true },
    { name: 'engine', label: 'Its storage engine', hint: 'innodb or myrocks; empty: the usual one' },
    { name: 'auto', label: 'Cut over as soon as both sides are the same', kind: 'check' },
    { name: 'threads', label: 'Partitions copied at a time', hint: '1 to 64; empty: 4' },
    { name: 'freeze_ms', label: 'How long a cutover may hold writes, in ms', hint: 'Empty: 1000' },
    ...kLimits,
  ];
  const of = (values) => dataset || values.dataset;
  const options = ({ dataset: ignored, ...values }) => values;
  return html`<${Action} label="Migrate" title=${dataset ? `Migrate ${dataset}` : 'Migrate a dataset'} kind="main" fields=${fields} shown=${shown} onDone=${onDone}
    about="Checks both sides, and records the migration. Nothing is copied before it is started."
    line=${(values) => command('kv migrate create', [of(values) || 'DATASET'], optionWords(options(values)))}
    plan=${async (values) => planOf(await migrate(of(values), 'create', { ...fieldsOf(options(values)), dry_run: true }))}
    run=${(values) => migrate(of(values), 'create', fieldsOf(options(values))).then(() => undefined)} />`;
}

/// What was seen of each migration while this page is open, for its plot.
const seen = new Map();
const kMostSeen = 600;
function remember(status) {
  const points = seen.get(status.dataset) || [];
  points.push({ at: Date.now(), units: Number(status.units_done), lag: status.lag ? Number(status.lag.units) : null });
  seen.set(status.dataset, points.slice(-kMostSeen));
}

function One({ dataset }) {
  const poll = usePoll(async (signal) => {
    const { status } = await call('migrate', { dataset, command: 'status' }, { signal });
    remember(status);
    return status;
  }, 2000, dataset);
  const none = poll.error && poll.error.code === 'NOT_FOUND';
  // Its window stays open when the migration has been made, though there is one then.
  const begins = none || ['finished', 'aborted'].includes(poll.data?.phase);
  const points = seen.get(dataset) || [];
  return html`<p><a href="#/migrations">Migrations</a></p><h1>${dataset}</h1>
    <div class="row"><${Create} dataset=${dataset} shown=${may('admin', dataset) && begins} onDone=${poll.again} /></div>
    ${none ? html`<section class="panel"><p>${dataset} does not migrate.</p></section>`
      : html`<${Loaded} poll=${poll}>${(one) => {
        const all = Number(one.units_done) + Number(one.units_left);
        return html`<section class="panel">
          ${one.problem && html`<div class="problem" role="alert">${one.problem}</div>`}
          ${one.doubt && html`<div class="problem" role="alert">${one.doubt}</div>`}
          <p><${Tag} kind=${one.problem || one.doubt ? 'bad' : one.phase === 'ready' || one.phase === 'finished' ? 'good' : ''}>${one.phase}</${Tag}> ${kPhases[one.phase]}
            ${one.paused ? html` <${Tag} kind="warn">paused</${Tag}>` : ''}${one.wanted && one.wanted !== 'nothing' ? html` <${Tag}>${one.wanted} was asked for</${Tag}>` : ''}</p>
          ${one.phase === 'backfill' && all > 0 && html`<div class="bar" role="progressbar" aria-label="Copied" aria-valuenow=${Math.round(100 * Number(one.units_done) / all)}
            aria-valuemin="0" aria-valuemax="100"><span style=${{ width: `${100 * Number(one.units_done) / all}%` }}></span></div>`}
          <${Facts} facts=${[
            ['from', one.source], ['to', one.target], ['serves', one.truth], ['copied', `${number(one.units_done)} units, ${bytes(one.bytes_done)}`],
            one.phase === 'backfill' && ['left, about', number(one.units_left)], one.phase === 'backfill' && ['a second', number(one.units_per_s)],
            one.phase === 'backfill' && ['time left, about', span(Number(one.seconds_left) * 1000)],
            ['partitions', `${one.partitions_done} of ${one.partitions}`], one.lag && ['behind', `${number(one.lag.units)} units, ${span(one.lag.ms)}`],
            ['comparisons', number(one.verify_passes)], ['compared', number(one.compared_units)], ['differences', number(one.differences)], ['repaired', number(one.repaired)],
            Number(one.write_pause_ms) > 0 && ['writes waited', span(one.write_pause_ms)], Number(one.read_pause_ms) > 0 && ['reads waited', span(one.read_pause_ms)],
            ['limits', Object.entries(one.limits).map(([name, value]) => `${name} ${value}`).join(', ')]]} />
          ${may('admin', dataset) && html`<div class="row">${Object.keys(kCommands).map((verb) => html`<${Command} key=${verb} dataset=${dataset} verb=${verb} shown=${one.next.includes(verb)} onDone=${poll.again} />`)}</div>`}
        </section>
        ${points.length > 1 && html`<section class="panel grid">
          <${Chart} title="Copied" unit="units" times=${points.map((point) => point.at)} series=${[{ label: 'units', values: points.map((point) => point.units) }]} />
          <${Chart} title="Behind" unit="units that were written and are not copied yet" times=${points.map((point) => point.at)} series=${[{ label: 'units', values: points.map((point) => point.lag) }]} /></section>`}
        <section class="panel"><h2>What happened</h2><${Table} caption="Events" rows=${[...one.events].reverse()} columns=${[
          { label: 'time', cell: (event) => time(event.at_ms) }, { label: 'who', cell: (event) => event.who }, { label: 'what', cell: (event) => event.what }]} /></section>`;
      }}</${Loaded}>`}`;
}

function All() {
  const list = usePoll(async (signal) => (await call('migrate', { dataset: '*', command: 'list' }, { signal })).status.migrations || [], 5000);
  return html`<h1>Migrations</h1><section class="panel"><div class="row">${may('admin') && html`<${Create} onDone=${list.again} />`}</div>
    <${Loaded} poll=${list}>${(all) => html`<${Table} caption="Migrations" rows=${all} keyOf=${(one) => one.dataset} empty="No dataset migrates." columns=${[
      { label: 'dataset', cell: (one) => html`<a href=${addressOf(['migrations', one.dataset])}>${one.dataset}</a>` },
      { label: 'from', cell: (one) => one.source }, { label: 'to', cell: (one) => one.target },
      { label: 'phase', cell: (one) => html`<${Tag} kind=${one.problem || one.doubt ? 'bad' : ''}>${one.phase}</${Tag}>${one.paused ? ' paused' : ''}` },
      { label: 'serves', cell: (one) => one.truth },
      { label: 'copied', number: true, cell: (one) => number(one.units_done) },
      { label: 'problem', cell: (one) => one.problem || one.doubt || '' }]} />`}</${Loaded}></section>`;
}

export function Migrations({ path }) {
  useSession();
  if (path[1]) return html`<${One} key=${path[1]} dataset=${path[1]} />`;
  if (may('admin')) return html`<${All} />`;
  // A list of all needs the right on all.
  return html`<h1>Migrations</h1><section class="panel"><p>Of the datasets that you may administer:</p>
    <ul>${datasetsWith('admin').map((name) => html`<li><a href=${addressOf(['migrations', name])}>${name}</a></li>`)}</ul></section>`;
}
