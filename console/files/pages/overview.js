// What the server does, the last hour, and what needs somebody.
import { html, useMemo, useState } from '../vendor/preact.js';
import { call, has, may, usePoll } from '../api.js';
import { Field, Problem, Table, Tag } from '../ui.js';
import { Chart } from '../charts.js';
import { micros, own, short, span } from '../format.js';

const kMost = 360;  // steps that are kept, as in the server

/// What was told so far: it stays while other pages are shown, so that only what is new is asked for.
let past = { steps: [], operations: {}, datasets: {} };

function merge(before, told) {
  // Where the server's clock was set back, it tells its steps anew.
  const since = told.steps.length ? told.steps[0] : Infinity;
  const steps = [...before.steps.filter((step) => step < since), ...told.steps].slice(-kMost);
  const first = steps.length ? steps[0] : 0;
  const join = (a, b) => {
    const all = Object.create(null);
    for (const name of new Set([...Object.keys(a), ...Object.keys(b)])) {
      const points = [...(own(a, name) || []).filter((point) => point[0] < since), ...(own(b, name) || [])].filter((point) => point[0] >= first);
      if (points.length) all[name] = points;
    }
    return all;
  };
  return { stepMs: told.step_ms, steps, operations: join(before.operations, told.operations), datasets: join(before.datasets, told.datasets) };
}

async function load(signal) {
  if (!may('read')) return past;
  const last = past.steps[past.steps.length - 1];
  past = merge(past, await call('get_history', last ? { after_ms: last } : {}, { signal }));
  return past;
}

/// The last minute of a series.
function minuteOf(history, name, points) {
  const since = history.steps[Math.max(0, history.steps.length - 6)];
  const last = points.filter((point) => point[0] >= since);
  const seconds = Math.min(6, history.steps.length) * history.stepMs / 1000;
  const calls = last.reduce((sum, point) => sum + point[1], 0);
  return {
    name,
    rate: seconds ? calls / seconds : 0,
    errors: last.reduce((sum, point) => sum + point[2], 0),
    p50: calls ? Math.round(last.reduce((sum, point) => sum + point[3] * point[1], 0) / calls) : 0,
    p99: last.reduce((worst, point) => Math.max(worst, point[4]), 0),
  };
}

/// Values for all steps; where there were no calls, `none`.
function valuesOf(history, points, pick, none) {
  const byTime = new Map((points || []).map((point) => [point[0], pick(point)]));
  return history.steps.map((step) => byTime.get(step) ?? none);
}

function topOf(series, most) {
  const sums = Object.entries(series).map(([name, points]) => [name, points.reduce((sum, point) => sum + point[1], 0)]);
  return sums.sort((a, b) => b[1] - a[1]).slice(0, most).map(([name]) => name);
}

function Figures({ history }) {
  const [by, setBy] = useState('operations');
  const [picked, setPicked] = useState('');
  const series = history[by];
  const names = topOf(series, 8);
  const one = picked && own(series, picked) ? picked : names[0];
  const perSecond = (point) => point[1] * 1000 / history.stepMs;
  const rows = useMemo(() => Object.entries(series).map(([name, points]) => minuteOf(history, name, points))
    .sort((a, b) => b.rate - a.rate), [history, by]);
  if (history.steps.length === 0) return html`<p class="loading">The first figures come ten seconds after the server began.</p>`;
  return html`<div class="row"><${Field} kind="select" label="By" value=${by} options=${['operations', 'datasets']} onValue=${setBy} />
      ${one && html`<${Field} kind="select" label="Latencies of" value=${one} options=${Object.keys(series).sort()} onValue=${setPicked} />`}</div>
    <div class="grid">
      <${Chart} title="Calls" unit="a second" kind="stacked" times=${history.steps}
        series=${names.map((name) => ({ label: name, values: valuesOf(history, series[name], perSecond, 0) }))} />
      <${Chart} title="Calls that failed" unit="a second" times=${history.steps}
        series=${names.map((name) => ({ label: name, values: valuesOf(history, series[name], (point) => point[2] * 1000 / history.stepMs, 0) }))} />
      ${one && html`<${Chart} title=${`How long ${one} takes`} unit="ms" times=${history.steps} series=${[
        { label: 'half of them', values: valuesOf(history, series[one], (point) => point[3] / 1000, null) },
        { label: '99 of 100', values: valuesOf(history, series[one], (point) => point[4] / 1000, null) }]} />`}
    </div>
    <h2>The last minute</h2>
    <${Table} caption="Calls of the last minute" rows=${rows.filter((row) => row.rate > 0)} keyOf=${(row) => row.name}
      empty="Nobody has called." columns=${[
        { label: by === 'operations' ? 'operation' : 'dataset', cell: (row) => row.name },
        { label: 'a second', number: true, cell: (row) => short(row.rate) },
        { label: 'failed', number: true, cell: (row) => (row.errors ? html`<${Tag} kind="bad">${row.errors}</${Tag}>` : '0') },
        { label: 'p50', number: true, cell: (row) => micros(row.p50) },
        { label: 'worst p99 of 10 s', number: true, cell: (row) => micros(row.p99) }]} />`;
}

/// Reads figures in Prometheus' text format: [{name, labels, value}].
export function readMetrics(text) {
  const all = [];
  for (const line of text.split('\n')) {
    const found = /^([a-z_]+)(?:\{(.*)\})? (\S+)/.exec(line);
    if (!found) continue;
    const labels = {};
    for (const [, name, value] of (found[2] || '').matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[name] = value.replace(/\\(.)/g, '$1');
    all.push({ name: found[1], labels, value: Number(found[3]) });
  }
  return all;
}

// The figures that tell of trouble: when, how bad, and what it means.
const kRules = [
  ['kvstore_rocksdb_write_stopped', (v) => v > 0, 'bad', () => 'The embedded store takes no writes: its disk is full or broken, or compaction is far behind.'],
  ['kvstore_rocksdb_background_errors', (v) => v > 0, 'bad', () => 'The embedded store had errors in the background; its log names them.'],
  ['kvstore_zookeeper_connected', (v) => v === 0, 'warn', () => 'ZooKeeper does not answer. The server goes on by the last maps and catalog that it has seen; nobody can change them.'],
  ['kvstore_catalog_current', (v) => v === 0, 'warn', () => 'The catalog of datasets may be old.'],
  ['kvstore_shard_map_current', (v) => v === 0, 'warn', () => 'The shard map may be old.'],
  ['kvstore_datasets_broken', (v) => v > 0, 'bad', (labels, v) => `${v} entries of the catalog cannot be read.`],
  ['kvstore_mysql_breaker_open', (v) => v > 0, 'bad', (labels) => `The MySQL host ${labels.host || ''} does not answer; calls on its shards fail at once.`],
  ['kvstore_backup_failing', (v) => v > 0, 'bad', () => 'The last backup failed.'],
  ['kvstore_backup_log_failing', (v) => v > 0, 'bad', () => 'The log of writes cannot be sent to the backups.'],
  ['kvstore_backup_prune_failing', (v) => v > 0, 'warn', () => 'Old backups cannot be removed.'],
  ['kvstore_consumer_lost', (v) => v > 0, 'warn', (labels) => `The consumer ${labels.consumer || ''} of ${labels.dataset || ''} was left behind: some of the changes that it needs are not kept any more.`],
  ['kvstore_tls_certificate_expires_seconds', (v) => v - Date.now() / 1000 < 14 * 86_400, 'warn', (labels, v) => `The server's certificate expires in ${span(Math.max(0, v * 1000 - Date.now()))}.`],
];

export function needsOf(metrics) {
  return metrics.flatMap(({ name, labels, value }) =>
    kRules.filter(([rule, when]) => rule === name && when(value)).map(([, , kind, say]) => ({ kind, text: say(labels, value) })));
}

async function figuresNeed(signal) {
  return may('read') ? needsOf(readMetrics((await call('get_metrics', {}, { signal })).text)) : [];
}

async function migrationsNeed(signal) {
  if (!has('migrations') || !may('admin')) return [];
  try {
    const { status } = await call('migrate', { dataset: '*', command: 'list' }, { signal });
    return (status.migrations || []).flatMap((one) => {
      const link = `#/migrations/${encodeURIComponent(one.dataset)}`;
      return [...(one.problem ? [{ kind: 'bad', text: `The migration of ${one.dataset} has a problem: ${one.problem}`, link }] : []),
        ...(one.doubt ? [{ kind: 'bad', text: `The migration of ${one.dataset} is in doubt: ${one.doubt}`, link }] : [])];
    });
  } catch (error) {
    if (error.name === 'AbortError' || error.code === 'UNREACHABLE') throw error;
    return [{ kind: 'warn', text: `The migrations cannot be listed: ${error.message}` }];
  }
}

/// The alarms of kv operate, where it was ever used.
async function fleetNeeds(signal) {
  if (!has('shard_operations') || !may('admin')) return [];
  try {
    const { answer } = await call('operate_shards', { command: 'operate_status' }, { signal });
    const alone = answer.pairs.some((one) => one.on) && !answer.members.some((one) => one.leads)
      ? [{ kind: 'bad', text: 'No process of kv operate leads, so that nobody acts when a master dies.', link: '#/shards' }] : [];
    return [...alone, ...answer.alarms.map((one) => ({ kind: 'bad', text: `${one.subject}: ${one.text}`, link: '#/shards' }))];
  } catch (error) {
    if (error.name === 'AbortError' || error.code === 'UNREACHABLE') throw error;
    return [{ kind: 'warn', text: `What kv operate says cannot be read: ${error.message}` }];
  }
}

function Needs() {
  // While ZooKeeper is away a list takes long, and the figures say so at once.
  const figures = usePoll(figuresNeed, 30_000);
  const migrations = usePoll(migrationsNeed, 30_000);
  const fleet = usePoll(fleetNeeds, 30_000);
  const needs = [...(figures.data || []), ...(migrations.data || []), ...(fleet.data || [])];
  const known = figures.data && migrations.data && fleet.data;
  return html`<section class="panel"><h2>What needs somebody</h2><${Problem} error=${figures.error || migrations.error || fleet.error} />
    ${needs.length === 0 ? known && html`<p class="good">Nothing.</p>`
      : html`<ul class="needs">${needs.map((one) => html`<li class=${one.kind}>${one.text}
          ${one.link && html` <a href=${one.link}>Look</a>`}</li>`)}</ul>`}</section>`;
}

export function Overview() {
  const allowed = may('read');
  const history = usePoll(load, 10_000);
  // Who may read little would be told that nothing needs anybody.
  return html`<h1>Overview</h1>${allowed && html`<${Needs} />`}
    <section class="panel"><h2>The last hour</h2>
      ${!allowed ? html`<p class="faint">The figures of the whole server need the right "read" on all datasets.</p>`
        : html`<${Problem} error=${history.error} />${history.data && html`<${Figures} history=${history.data} />`}`}</section>`;
}
