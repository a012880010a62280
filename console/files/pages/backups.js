// Backups: how old they are, and making one.
import { html } from '../vendor/preact.js';
import { call, may, usePoll, useSession } from '../api.js';
import { Action, Facts, Loaded, Table, Tag } from '../ui.js';
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

export function Backups() {
  useSession();
  const figures = usePoll(async (signal) => readMetrics((await call('get_metrics', {}, { signal })).text).filter(({ name }) => name.startsWith('kvstore_backup')), 10_000);
  const labelOf = (labels) => labels.dataset || labels.host || 'the whole store';
  return html`<h1>Backups</h1><section class="panel"><div class="row">${may('admin') && html`<${Create} onDone=${figures.again} />`}</div>
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
    <p class="equal">All backups, and what is in them:</p><ul><li><code>kv backup list</code></li><li><code>kv backup verify</code></li></ul></section>`;
}
