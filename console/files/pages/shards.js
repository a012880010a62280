// The shards, their hosts, and what is being done to them.
import { html, useState } from '../vendor/preact.js';
import { call, has, usePoll, useSession } from '../api.js';
import { Action, Field, Loaded, Table, Tag } from '../ui.js';
import { bytes, command, number, span, time } from '../format.js';
import { numberIn } from './datasets.js';
import { ShardPicture, pairOf } from './shard_picture.js';

// Each of these questions is a line of the server's log, and one about hosts asks all of them.
const kOften = 30_000;
const kRarely = 60_000;

async function operate(verb, fields = {}, options = {}) {
  return call('operate_shards', { command: verb, ...fields }, options);
}
const rangeOf = (text) => {
  const found = /^(\d+)-(\d+)$/.exec(text.trim());
  if (!found) throw new Error('The range must be two numbers: 256-511');
  return { first: numberIn(found[1]), last: numberIn(found[2]) };
};

/// What a dry run has said, for people.
function planOf({ answer, lines }) {
  const told = [...lines];
  for (const problem of answer.problems || []) told.push(`Stands against it: ${typeof problem === 'string' ? problem : JSON.stringify(problem)}`);
  if (told.length === 0 || answer.master) {
    for (const [name, value] of Object.entries(answer)) if (name !== 'problems') told.push(`${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`);
  }
  return told;
}
async function toldBy(work) {
  const { answer, lines } = await work;
  return [...lines, ...Object.entries(answer).map(([name, value]) => `${name}: ${typeof value === 'object' ? JSON.stringify(value) : value}`)];
}

function Actions({ onDone }) {
  const move = (values) => ({ ...rangeOf(values.range), to: values.to, mod: values.mod || undefined, hold_writes: values.hold || undefined });
  const open = (values) => ({ ...rangeOf(values.range), master: values.master, slave: values.slave });
  return html`<div class="row"><${Action} label="Open shards" onDone=${onDone} name="open" about="Makes databases and tables on both hosts, then adds the shards to the map."
      fields=${[{ name: 'range', label: 'First and last shard', hint: '3440-3455', required: true }, { name: 'master', label: 'Host that accepts the writes', required: true },
        { name: 'slave', label: 'Host that replicates from it', required: true }]}
      line=${(values) => command('kv shards open', [], ['--range', values.range || 'A-B', '--master', values.master || 'HOST', '--slave', values.slave || 'HOST'])}
      plan=${async (values) => planOf(await operate('open', { ...open(values), dry_run: true }))} run=${(values) => toldBy(operate('open', open(values)))} />
    <${Action} label="Move shards" onDone=${onDone} name="move" about="Copies the shards while clients use them, compares the copy, and switches a few at a time."
      fields=${[{ name: 'range', label: 'First and last shard', hint: '256-511', required: true }, { name: 'to', label: 'The pair that gets them', hint: 'MASTER,SLAVE', required: true },
        { name: 'mod', label: 'Mod shards, which have the rows; else ID shards', kind: 'check' }, { name: 'hold', label: 'Hold writes where the copy does not catch up', kind: 'check' }]}
      line=${(values) => command('kv shards move', [], ['--range', values.range || 'A-B', '--to', values.to || 'MASTER,SLAVE', values.mod ? '--mod' : [], values.hold ? '--hold-writes' : []])}
      plan=${async (values) => planOf(await operate('move', { ...move(values), dry_run: true }))} run=${(values) => toldBy(operate('move', move(values)))} /></div>`;
}

function Promote({ host, shown, onDone }) {
  const fields = (values) => ({ host, emergency: values.emergency || undefined, accept_loss: values.emergency && values.loss ? numberIn(values.loss) : undefined });
  return html`<${Action} label="Promote" title=${`Make ${host} the master`} name=${host} shown=${shown} onDone=${onDone}
    about="The master stops accepting writes, the slave applies the rest, the maps name it, and the old master replicates from it. Clients wait meanwhile."
    fields=${[{ name: 'emergency', label: 'The master is gone', kind: 'check', hint: 'Refused while it answers, or if acknowledged writes may be lost' },
      { name: 'loss', label: 'Go on although up to so many acknowledged transactions may be lost', hint: 'Empty: none', shown: (values) => values.emergency }]}
    line=${(values) => command('kv shards promote', [host], [values.emergency ? '--emergency' : [], values.emergency && values.loss ? ['--accept-loss', values.loss] : []])}
    plan=${async (values) => planOf(await operate('promote', { ...fields(values), dry_run: true }))} run=${(values) => toldBy(operate('promote', fields(values)))} />`;
}

function Hosts({ hosts, onDone, operates }) {
  return html`<section class="panel"><div class="row"><h2>Hosts</h2><button type="button" onClick=${onDone}>Look again</button></div><${Loaded} poll=${hosts}>${({ answer }) => html`
    ${answer.by_copies && html`<div class="problem" role="alert">${answer.by_copies}</div>`}
    <${Table} caption="Hosts" rows=${answer.hosts} keyOf=${(one) => one.host} columns=${[
      { label: 'host', cell: (one) => html`${one.host} ${one.problems.map((problem) => html`<div class="bad">${problem}</div>`)}` },
      { label: 'role', cell: (one) => (one.read_only === undefined ? html`${one.role} <${Tag} kind="bad">does not answer</${Tag}>` : html`${one.role}${one.read_only ? '' : html` <${Tag}>writable</${Tag}>`}`) },
      { label: 'pair', cell: (one) => one.pair.join(', ') },
      { label: 'shards', number: true, cell: (one) => number(one.shards) },
      { label: 'lag', number: true, cell: (one) => (one.lag_s === undefined ? '' : span(one.lag_s * 1000)) },
      { label: 'semi-sync', cell: (one) => (one.semi_sync === undefined ? '' : one.semi_sync ? html`<${Tag} kind="good">on</${Tag}>` : html`<${Tag} kind="warn">off</${Tag}>`) },
      { label: 'connections', number: true, cell: (one) => number(one.connections) },
      { label: 'data', number: true, cell: (one) => (one.bytes === undefined ? '' : bytes(one.bytes)) },
      { label: 'version', cell: (one) => one.version || '' },
      ...(operates ? [{ label: 'actions', cell: (one) => html`<${Promote} host=${one.host} shown=${one.role === 'slave'} onDone=${onDone} />` }] : [])]} />`}</${Loaded}></section>`;
}

async function movesOf(signal) {
  const { answer } = await operate('moves', {}, { signal });
  return [...(answer.damaged || []), ...(answer.moves || [])];
}

function Works() {
  const works = usePoll(async (signal) => ({
    operations: (await operate('operations', {}, { signal })).answer.operations || [],
    moves: await movesOf(signal),
  }), kOften);
  return html`<section class="panel"><h2>Under way</h2><${Loaded} poll=${works}>${({ operations, moves }) => html`
    <${Table} caption="Operations" rows=${operations} keyOf=${(one) => one.id} empty="No operation is under way." columns=${[
      { label: 'operation', cell: (one) => one.what }, { label: 'who', cell: (one) => one.who }, { label: 'since', cell: (one) => time(one.since_ms) },
      { label: 'to go on', cell: (one) => (one.go_on ? html`<code>${one.go_on}</code>` : '') }]} />
    ${moves.length > 0 && html`<${Table} caption="Moves" rows=${moves} columns=${[
      { label: 'shards', cell: (one) => (one.range ? `${one.space} ${one.range.join(' to ')}` : one.path) }, { label: 'from', cell: (one) => (one.from || []).join(', ') },
      { label: 'to', cell: (one) => (one.to || []).join(', ') }, { label: 'state', cell: (one) => one.state || one.problem },
      { label: 'old tables at', cell: (one) => (one.old_tables_at || []).join(', ') }]} />`}`}</${Loaded}></section>`;
}

/// The processes of kv operate, the pairs that it may act in, what is wrong, and what it has done.
function Operated() {
  const told = usePoll(async (signal) => ({
    ...(await operate('operate_status', {}, { signal })).answer,
    events: (await operate('operate_journal', {}, { signal })).answer.events.reverse().slice(0, 50),
  }), kOften);
  return html`<section class="panel"><h2>kv operate</h2><${Loaded} poll=${told}>${({ members, pairs, alarms, events }) => html`
    ${alarms.length > 0 && html`<${Table} caption="Alarms" rows=${alarms} columns=${[
      { label: 'alarm', cell: (one) => one.subject }, { label: 'since', cell: (one) => time(one.since_ms) },
      { label: 'what is wrong', cell: (one) => one.text }, { label: 'page', cell: (one) => (one.page ? html`<code>docs/${one.page}</code>` : '') }]} />`}
    <${Table} caption="Processes of kv operate" rows=${members} keyOf=${(one) => one.who}
      empty="No process of kv operate runs: nobody acts when a master dies." columns=${[
        { label: 'process', cell: (one) => one.who }, { label: 'role', cell: (one) => (one.leads ? html`<${Tag} kind="good">leads</${Tag}>` : 'watches') },
        { label: 'last heard of', cell: (one) => time(one.said_ms) }]} />
    ${pairs.length > 0 && html`<${Table} caption="Pairs of kv operate" rows=${pairs} keyOf=${(one) => one.pair} columns=${[
      { label: 'pair', cell: (one) => one.pair },
      { label: 'promotes by itself', cell: (one) => (one.problem ? html`<${Tag} kind="bad">${one.problem}</${Tag}>` : one.on ? html`<${Tag} kind="good">on</${Tag}>` : 'off') },
      { label: 'since', cell: (one) => (one.since_ms ? time(one.since_ms) : '') }, { label: 'by', cell: (one) => one.by || '' },
      { label: 'last promotion', cell: ({ promoted }) => (promoted ? `${promoted.to} for ${promoted.from}, ${time(promoted.begun_ms)}${promoted.done ? '' : ', not completed'}` : '') }]} />`}
    ${events.length > 0 && html`<details><summary>What it has done</summary><${Table} caption="Events of kv operate" rows=${events} columns=${[
      { label: 'at', cell: (one) => time(one.at_ms) }, { label: 'kind', cell: (one) => one.kind }, { label: 'about', cell: (one) => one.subject },
      { label: 'what', cell: (one) => one.text }, { label: 'by', cell: (one) => one.by }]} /></details>`}`}</${Loaded}></section>`;
}

function ShardMap({ space, trouble }) {
  const [picked, setPicked] = useState(null);
  const [filter, setFilter] = useState('');
  const map = usePoll(async (signal) => JSON.parse((await call('get_shard_map', { space }, { signal })).map), kOften, space);
  return html`<section class="panel"><h2>${space === 'id' ? 'ID shards: objects and mappings' : 'Mod shards: rows'}</h2>
    ${map.error && map.error.code === 'NOT_FOUND' ? html`<p class="empty">There is no such map.</p>` : html`<${Loaded} poll=${map}>${(ranges) => {
      const range = picked === null ? undefined : ranges.find((one) => picked >= one.range[0] && picked <= one.range[1]);
      const shown = ranges.filter((one) => (!filter || pairOf(one).includes(filter)) && (!range || one === range));
      return html`<${ShardPicture} ranges=${ranges} trouble=${trouble} onPick=${setPicked} />
        <div class="row"><${Field} label="Hosts with" type="search" value=${filter} onValue=${setFilter} />
          ${picked !== null && html`<button type="button" onClick=${() => setPicked(null)}>All ranges</button><span>Shard ${picked}${range ? '' : ' is not open'}</span>`}</div>
        <${Table} caption=${`Ranges of ${space === 'id' ? 'ID' : 'mod'} shards`} rows=${shown.slice(0, 500)} keyOf=${(one) => one.range[0]} columns=${[
          { label: 'first', number: true, cell: (one) => one.range[0] }, { label: 'last', number: true, cell: (one) => one.range[1] },
          { label: 'shards', number: true, cell: (one) => number(one.range[1] - one.range[0] + 1) },
          { label: 'master', cell: (one) => html`${one.master} ${trouble.has(one.master) ? html`<${Tag} kind="bad">has a problem</${Tag}>` : ''}` },
          { label: 'slave', cell: (one) => html`${one.slave} ${trouble.has(one.slave) ? html`<${Tag} kind="bad">has a problem</${Tag}>` : ''}` }]} />
        ${shown.length > 500 && html`<p class="faint">${number(shown.length)} ranges; 500 are shown.</p>`}`;
    }}</${Loaded}>`}</section>`;
}

export function Shards() {
  useSession();
  const operates = has('shard_operations');
  const hosts = usePoll((signal) => (operates ? operate('status', {}, { signal }) : { answer: { hosts: [] } }), kRarely, String(operates));
  const trouble = new Set(hosts.data ? hosts.data.answer.hosts.filter((one) => one.problems.length > 0).map((one) => one.host) : []);
  return html`<h1>Shards</h1>
    ${operates ? html`<${Actions} onDone=${hosts.again} /><${Hosts} hosts=${hosts} onDone=${hosts.again} operates=${operates} /><${Works} /><${Operated} />`
      : html`<p class="faint">This server does not operate its hosts: it has no list of callers, or no logins for that. The maps can be seen.</p>`}
    <${ShardMap} space="id" trouble=${trouble} /><${ShardMap} space="mod" trouble=${trouble} />`;
}
