// Backups: how old they are, which there are, making one, and looking whether one is whole.
import { html, useState } from '../vendor/preact.js';
import { call, has, may, usePoll, useSession } from '../api.js';
import { Action, Facts, Field, Loaded, Table, Tag } from '../ui.js';
import { bytes, command, number, span, time } from '../format.js';
import { readMetrics } from './overview.js';

const kKinds = [
  ['kvstore_backup_age_seconds', 'The last backup', 'began so long ago'],
  ['kvstore_backup_log_age_seconds', 'The log of writes', 'is sent up to so long ago'],
];

function Create({ onDone }) {
  return html`<${Action} label="Make a backup" kind="main" onDone=${onDone} about="It has everything that was acknowledged before it began. It may take long."
    fields=${[{ name: 'dataset', label: 'Dataset', hint: 'Empty: the whole embedded store' }]}
    line=${(values) => command('kv backup create', [], values.dataset ? ['--dataset', values.dataset] : [])}
    run=${async (values) => {
      const made = await call('create_backup', values.dataset ? { dataset: values.dataset } : {});
      return [`Its ID is ${made.backup}, at ${made.url}.`, `${bytes(made.bytes)} in ${number(made.files)} files; ${bytes(made.sent_bytes)} were sent.`,
        `It has everything until ${time(made.began_ms)}.`];
    }} />`;
}

function Verify({ dataset, backup }) {
  return html`<${Action} label="Verify" kind="quiet" title=${`Verify the backup ${backup}`} about="All objects must be there with their sizes, and what says what is in the store must decode."
    fields=${[{ name: 'deep', label: 'Read everything', kind: 'check', hint: 'And compare it with its checksums. It may take long' }]}
    line=${(values) => command('kv backup verify', [], ['--backup', backup, ...(dataset ? ['--dataset', dataset] : []), ...(values.deep ? ['--deep'] : [])])}
    run=${async (values) => {
      const found = await call('verify_backup', { backup, ...(dataset ? { dataset } : {}), deep: Boolean(values.deep) });
      if (found.problems.length > 0) throw new Error(`The backup is not whole: ${found.problems.join('; ')}`);
      return [`The backup is whole: ${number(found.objects)} objects are there.`,
        values.deep ? `${bytes(found.read_bytes)} were read and have their checksums.` : 'The data was not read.'];
    }} />`;
}

/// The newest backups of the store, or of a dataset. made: how many were made meanwhile, each of which is a reason to ask again.
function List({ made }) {
  const [typed, setTyped] = useState('');
  const [dataset, setDataset] = useState('');
  const list = usePoll((signal) => call('list_backups', dataset ? { dataset } : {}, { signal }), 60_000, `${made} ${dataset}`);
  return html`<section class="panel"><h2>Which there are</h2>
    <form class="row" onSubmit=${(event) => { event.preventDefault(); setDataset(typed); }}>
      <${Field} label="Of the dataset" hint="Empty: of the whole store" value=${typed} onValue=${setTyped} /><button type="submit">Show</button></form>
    <${Loaded} poll=${list}>${(all) => html`<p class="faint">at <code>${all.url}</code>${all.more && `; the newest ${number(all.backups.length)}`}</p>
      ${all.unreadable.length > 0 && html`<p><${Tag} kind="bad">cannot be read</${Tag}> ${all.unreadable.join(', ')}</p>`}
      <${Table} caption="Backups that there are" rows=${all.backups} keyOf=${(one) => one.backup} columns=${[
        { label: 'backup', cell: (one) => html`<code>${one.backup}</code>` }, { label: 'has everything until', cell: (one) => time(one.began_ms) },
        { label: 'took', number: true, cell: (one) => span(one.finished_ms - one.began_ms) }, { label: 'size', number: true, cell: (one) => bytes(one.bytes) },
        { label: 'sent', number: true, cell: (one) => bytes(one.sent_bytes) }, { label: 'actions', cell: (one) => html`<${Verify} dataset=${dataset} backup=${one.backup} />` }]} />`}</${Loaded}>
    <p class="equal"><code>${command('kv backup list', [], dataset ? ['--dataset', dataset] : [])}</code></p></section>`;
}

export function Backups() {
  useSession();
  const [made, setMade] = useState(0);
  const figures = usePoll(async (signal) => readMetrics((await call('get_metrics', {}, { signal })).text).filter(({ name }) => name.startsWith('kvstore_backup')), 10_000);
  const labelOf = (labels) => labels.dataset || labels.host || 'the whole store';
  return html`<h1>Backups</h1><section class="panel"><div class="row">${may('admin') && html`<${Create} onDone=${() => { figures.again(); setMade(made + 1); }} />`}</div>
    <${Loaded} poll=${figures}>${(all) => {
      const find = (name) => all.filter((one) => one.name === name);
      const failing = ['kvstore_backup_failing', 'kvstore_backup_log_failing', 'kvstore_backup_prune_failing'].flatMap(find).filter(({ value }) => value > 0);
      return html`${failing.length > 0 && html`<p><${Tag} kind="bad">failing</${Tag}> The server's log says why.</p>`}
        <${Table} caption="Backups" rows=${kKinds.flatMap(([name, what, says]) => find(name).map((one) => ({ what, says, ...one })))} empty="The server makes no backups by itself (backup.every of its configuration), so it has no figures of them." columns=${[
          { label: 'what', cell: (one) => one.what }, { label: 'of', cell: (one) => labelOf(one.labels) },
          { label: 'which', cell: (one) => one.says }, { label: 'age', number: true, cell: (one) => (Number.isFinite(one.value) ? span(one.value * 1000) : 'never') }]} />
        <${Facts} facts=${[['backups made', number(find('kvstore_backups_total').reduce((sum, one) => sum + one.value, 0))],
          ['that failed', number(find('kvstore_backup_failures_total').reduce((sum, one) => sum + one.value, 0))],
          ['bytes sent', bytes(find('kvstore_backup_sent_bytes_total').reduce((sum, one) => sum + one.value, 0))]]} />`;
    }}</${Loaded}>
    </section>${may('admin') && has('backups') && html`<${List} made=${made} />`}`;
}
