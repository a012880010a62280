// Reports: a question, and its answer as a chart, as numbers, and as a link to both.
import { html, useEffect, useState } from '../vendor/preact.js';
import { call, usePoll, useSession } from '../api.js';
import { Command, Facts, Field, Loaded, Problem, addressOf } from '../ui.js';
import { Chart } from '../charts.js';
import { bytes, command, number, own, short } from '../format.js';

const kFunctions = ['sum', 'count', 'avg', 'min', 'max', 'last', 'distinct', 'p50', 'p90', 'p99'];
const kSteps = ['', '1m', '15m', '1h', '1d', '1w', '1mo', '1y'];
const kMostSeries = 24;  // that are drawn

/// The question as the address has it: "metrics=a,b&from=-7d&step=1d&by=country&where.country=DE,FR".
function formOf(query, info) {
  const where = Object.create(null);
  for (const [name, value] of query) if (name.startsWith('where.')) where[name.slice(6)] = value;
  return {
    metrics: query.get('metrics') ?? (info.metrics[0] ? info.metrics[0].name : ''),
    from: query.get('from') ?? '', to: query.get('to') ?? '', step: query.get('step') ?? '1d', zone: query.get('zone') ?? 'UTC',
    by: query.get('by') ?? '', function: query.get('function') ?? 'sum', top: query.get('top') ?? '', compare: query.get('compare') ?? '',
    fill: query.get('fill') ?? 'none', kind: query.get('kind') ?? 'lines', where,
  };
}
function queryOf(form) {
  const query = {};
  for (const [name, value] of Object.entries(form)) if (name !== 'where' && (value !== '' || name === 'step')) query[name] = value;
  for (const [key, value] of Object.entries(form.where)) if (value !== '') query[`where.${key}`] = value;
  return query;
}
const split = (text) => text.split(',').map((one) => one.trim()).filter(Boolean);

/// Times before now as the command line has them: "-7d".
function timeIn(text) {
  const ago = /^-(\d+)(m|h|d|w)$/.exec(text);
  if (text === 'now') return Date.now();
  if (!ago) return /^\d{6,}$/.test(text) ? Number(text) : text;
  return Date.now() - Number(ago[1]) * { m: 60_000, h: 3_600_000, d: 86_400_000, w: 604_800_000 }[ago[2]];
}

function requestOf(report, form) {
  const where = Object.fromEntries(Object.entries(form.where).filter(([, value]) => value !== '').map(([key, value]) => [key, value === '*' ? '*' : split(value)]));
  return {
    report, metrics: split(form.metrics), from: timeIn(form.from || '-30d'), to: timeIn(form.to || 'now'), step: form.step || undefined,
    timezone: form.zone || undefined, filters: Object.keys(where).length ? [{ where }] : undefined, group_by: form.by ? split(form.by) : undefined,
    function: form.function, top: form.top ? { n: form.top } : undefined, fill: form.fill, compare_to: form.compare || undefined,
    partial: true, explain: true,
  };
}
/// A value within --where KEY=VALUE,VALUE as the command line reads it.
const whereIn = (text) => text.replace(/[\\;=]/g, '\\$&');
function lineOf(report, form) {
  return command('kv report query', [report, ...split(form.metrics)], [form.from ? `--from=${form.from}` : [], form.to ? `--to=${form.to}` : [],
    form.step ? ['--step', form.step] : [], form.zone !== 'UTC' ? ['--zone', form.zone] : [],
    Object.entries(form.where).filter(([, value]) => value && value !== '*').flatMap(([key, value]) => ['--where', `${whereIn(key)}=${whereIn(value)}`]),
    split(form.by).flatMap((key) => ['--by', key]), form.function !== 'sum' ? ['--function', form.function] : [], form.top ? ['--top', form.top] : [],
    form.fill !== 'none' ? ['--fill', form.fill] : [], form.compare ? `--compare=${form.compare}` : [], '--partial']);
}

function labelOf(series, several) {
  const parts = [...(several ? [series.metric] : []), ...Object.values(series.segments)];
  return parts.join(' · ') || series.metric;
}

function Answer({ answer, form }) {
  const several = new Set(answer.series.map((one) => one.metric)).size > 1;
  const shown = answer.series.slice(0, kMostSeries);
  const times = [...new Set(shown.flatMap((one) => [...one.points, ...(one.compared || [])].map(([at]) => at)))].sort((a, b) => a - b);
  const valuesOf = (points) => {
    const byTime = new Map(points.map(([at, value]) => [at, value === null ? null : Number(value)]));
    return times.map((at) => byTime.get(at) ?? null);
  };
  const textsOf = (points) => {
    const byTime = new Map(points);
    return times.map((at) => number(byTime.get(at)));
  };
  const lineOfPoints = (label, points) => ({ label, values: valuesOf(points), texts: textsOf(points) });
  const series = shown.flatMap((one) => [lineOfPoints(labelOf(one, several), one.points),
    ...(one.compared && one.compared.length ? [lineOfPoints(`${labelOf(one, several)} (${form.compare})`, one.compared)] : [])]);
  const totals = !form.step;
  return html`<section class="panel">
    ${answer.partial && html`<div class="problem" role="alert">The answer is not whole: ${(answer.missing || []).join('; ')}</div>`}
    ${answer.series.length === 0 ? html`<p class="empty">There are no such points.</p>`
      : totals ? html`<${Totals} series=${shown} several=${several} />`
        : html`<${Chart} title=${split(form.metrics).join(', ')} kind=${form.kind} height=${320} zone=${form.zone} times=${times} series=${series} />`}
    ${answer.series.length > shown.length && html`<p class="faint">${number(answer.series.length)} series; the first ${shown.length} are shown. Ask for the greatest (top N).</p>`}
    <h2>What it cost</h2><${Facts} facts=${[['rows', number(answer.cost.rows)], ['chunks read', number(answer.cost.chunks)], ['chunks skipped', number(answer.cost.chunks_skipped)],
      ['bytes', bytes(answer.cost.bytes)], ['parts from roll-ups', number(answer.cost.from_rollups)], ['time', `${short(Number(answer.cost.ms))} ms`]]} /></section>`;
}

/// One value for each series, as bars.
function Totals({ series, several }) {
  const rows = series.map((one) => ({ label: labelOf(one, several), value: one.points[0] ? one.points[0][1] : null, compared: one.compared && one.compared[0] ? one.compared[0][1] : null }));
  const most = Math.max(1e-9, ...rows.map((row) => Math.abs(Number(row.value || 0))));
  return html`<table><caption class="hidden">Totals</caption><tbody>${rows.map((row) => html`<tr><th scope="row">${row.label}</th><td class="number">${row.value === null ? '-' : number(row.value)}</td>
    ${row.compared !== null && html`<td class="number faint">before: ${number(row.compared)}</td>`}
    <td style=${{ width: '50%' }}><div class="bar"><span style=${{ width: `${100 * Math.abs(Number(row.value || 0)) / most}%` }}></span></div></td></tr>`)}</tbody></table>`;
}

function Report({ name, query }) {
  const info = usePoll((signal) => call('report_info', { report: name }, { signal }), 0, name);
  return html`<p><a href="#/reports">Reports</a></p><h1>${name}</h1><${Loaded} poll=${info}>${(known) => html`<${Question} name=${name} info=${known} query=${query} />`}</${Loaded}>`;
}

function Question({ name, info, query }) {
  const asked = formOf(query, info);
  const key = JSON.stringify(asked);
  const [form, setForm] = useState(asked);
  useEffect(() => setForm(asked), [key]);  // somebody went back, or followed a link
  const answer = usePoll((signal) => call('query_report', requestOf(name, asked), { signal }), 0, `${name} ${key}`);
  const set = (field) => (value) => setForm((before) => ({ ...before, [field]: value }));
  const send = (event) => {
    event.preventDefault();
    const next = addressOf(['reports', name], queryOf(form));
    if (location.hash === next) answer.again();
    else location.hash = next;
  };
  const keys = info.segment_keys.map((one) => (typeof one === 'string' ? one : one.name));
  const metrics = info.metrics.map((one) => (typeof one === 'string' ? one : one.name));
  return html`<section class="panel"><form class="row" onSubmit=${send}>
      <${Field} label="Metrics" value=${form.metrics} onValue=${set('metrics')} list="metrics" required hint="Several with commas" />
      <datalist id="metrics">${metrics.map((one) => html`<option value=${one} />`)}</datalist>
      <${Field} kind="select" label="Function" options=${kFunctions.includes(form.function) ? kFunctions : [...kFunctions, form.function]} value=${form.function} onValue=${set('function')} />
      <${Field} label="From" placeholder="-30d" value=${form.from} onValue=${set('from')} hint="A date, or -7d" />
      <${Field} label="Until" placeholder="now" value=${form.to} onValue=${set('to')} />
      <${Field} kind="select" label="Step" options=${kSteps.includes(form.step) ? kSteps : [...kSteps, form.step]} value=${form.step} onValue=${set('step')} hint="Empty: one value" />
      <${Field} label="Time zone" size="12" value=${form.zone} onValue=${set('zone')} />
      <${Field} kind="select" label="A series for each" options=${['', ...keys]} value=${form.by} onValue=${set('by')} />
      <${Field} kind="number" label="The greatest" size="4" placeholder="all" value=${form.top} onValue=${set('top')} />
      <${Field} label="Beside" placeholder="-7d" size="6" value=${form.compare} onValue=${set('compare')} hint="So much earlier" />
      <${Field} kind="select" label="Steps without points" options=${['none', 'zero', 'previous']} value=${form.fill} onValue=${set('fill')} />
      <${Field} kind="select" label="Drawn as" options=${['lines', 'stacked', 'bars']} value=${form.kind} onValue=${set('kind')} />
      ${keys.map((one) => html`<${Field} key=${one} label=${`Only ${one}`} value=${own(form.where, one) || ''} list=${`values-${one}`} placeholder="any"
        onValue=${(value) => setForm((before) => ({ ...before, where: { ...before.where, [one]: value } }))} />
        <datalist id=${`values-${one}`}>${(own(info.segment_values, one) || []).slice(0, 200).map((value) => html`<option value=${value} />`)}</datalist>`)}
      <button class="main">Ask</button></form>
      <p class="equal">The same by command; the address of this page asks the same question again:</p><${Command} text=${lineOf(name, asked)} /></section>
    ${answer.error ? html`<${Problem} error=${answer.error} again=${answer.again} />` : !answer.data ? html`<p class="loading">Asking...</p>` : html`<${Answer} answer=${answer.data} form=${asked} />`}
    <section class="panel"><h2>The report</h2><${Facts} facts=${[['segment keys', keys.join(', ')], ['metrics', info.metrics.map((one) => one.name || one).slice(0, 30).join(', ')],
      ['resolution', info.resolution], ['period of a row', info.period], ['salts', number(info.salts)], ['points are kept', info.retention === '0' ? 'for ever' : info.retention],
      ['roll-ups', (info.rollups || []).map((one) => `${(one.keys || []).join('+') || 'all'} by ${one.step}`).join(', ')]]} /></section>`;
}

export function Reports({ path, query }) {
  useSession();
  const list = usePoll(async (signal) => {
    try {
      return (await call('list_reports', {}, { signal })).reports;
    } catch (error) {
      if (error.code === 'NOT_FOUND') return [];  // there is no dataset that has reports
      throw error;
    }
  }, path[1] ? 0 : 30_000);
  if (path[1]) return html`<${Report} key=${path[1]} name=${path[1]} query=${query} />`;
  return html`<h1>Reports</h1><section class="panel"><${Loaded} poll=${list}>${(all) => (all.length === 0
    ? html`<p class="empty">There are none. Make one with</p><${Command} text="kv report create visits --key country --metric views" />`
    : html`<ul>${all.map((name) => html`<li><a href=${addressOf(['reports', name])}>${name}</a></li>`)}</ul>`)}</${Loaded}></section>`;
}
