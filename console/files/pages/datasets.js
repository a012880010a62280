// All datasets.
import { html, useMemo, useState } from '../vendor/preact.js';
import { call, may, usePoll, useSession } from '../api.js';
import { Action, Field, Loaded, Table, Tag, addressOf } from '../ui.js';
import { bytes, command, number, own, span } from '../format.js';

const kSizes = 50;  // of so many datasets at once

export const kSettings = [
  { name: 'max_versions', label: 'Versions of a column that are kept', hint: '0: all', shown: (values) => !values.shape || values.shape === 'rows' },
  { name: 'ttl_ms', label: 'Age at which cells expire, in ms', hint: '0: never', shown: (values) => !values.shape || values.shape === 'rows' },
  { name: 'durability', label: 'An acknowledged write survives the death of the', kind: 'select', options: ['', 'process', 'machine'] },
  { name: 'keep_changes_ms', label: 'How long changes are kept, in ms', hint: '0: they are not recorded' },
];

/// The settings that somebody has given, as fields of a request.
export function settingsOf(values) {
  const given = {};
  for (const { name } of kSettings) {
    if (values[name] !== undefined && values[name] !== '') given[name] = name === 'durability' ? values[name] : numberIn(values[name]);
  }
  return given;
}
/// A whole number that somebody has typed; the server says what is wrong with anything else.
export function numberIn(text) { return /^\d+$/.test(text) ? String(text) : text; }
export function settingWords(values) {
  return Object.entries(settingsOf(values)).flatMap(([name, value]) => [`--${name.replaceAll('_', '-')}`, value]);
}

function Create({ onDone }) {
  const fields = [
    { name: 'dataset', label: 'Name', required: true, hint: 'Letters, digits, _, - and . ; at most 48' },
    { name: 'shape', label: 'Shape', kind: 'select', options: ['rows', 'objects', 'mappings'] },
    { name: 'backend', label: 'Backend', hint: 'rocksdb or mysql; empty: the one that the configuration names' },
    { name: 'type', label: 'Type number', hint: '1 to 1023; empty: the lowest free one', shown: (values) => values.shape === 'objects' },
    ...kSettings,
  ];
  const given = (values) => Object.fromEntries(Object.entries(values).filter(([name]) => !fields.find((field) => field.name === name).shown
    || fields.find((field) => field.name === name).shown(values)));
  return html`<${Action} label="Create a dataset" kind="main" fields=${fields} onDone=${onDone}
    line=${(values) => command('kv dataset create', [values.dataset || 'NAME'], [values.shape !== 'rows' ? ['--shape', values.shape] : [],
      values.backend ? ['--backend', values.backend] : [], given(values).type ? ['--type', values.type] : [], settingWords(given(values))].flat())}
    run=${(values) => call('create_dataset', {
      dataset: values.dataset, shape: values.shape, backend: values.backend || undefined,
      type: given(values).type ? numberIn(values.type) : undefined, ...settingsOf(given(values)) }).then(() => undefined)} />`;
}

export function Datasets() {
  useSession();
  const [filter, setFilter] = useState('');
  const list = usePoll(async (signal) => (await call('list_datasets', {}, { signal })).datasets, 15_000);
  const found = useMemo(() => (list.data || []).filter((one) => one.dataset.includes(filter)), [list.data, filter]);
  const few = found.length <= kSizes;
  const names = few ? found.filter((one) => one.backend && may('read', one.dataset)).map((one) => one.dataset) : [];
  const sizes = usePoll(async (signal) => {
    const all = Object.create(null);
    for (const dataset of names) {
      try {
        all[dataset] = await call('get_stats', { dataset }, { signal });
      } catch (error) {
        if (error.name === 'AbortError') throw error;  // else one without a size
      }
    }
    return all;
  }, 60_000, names.join(' '));
  const columns = [
    { label: 'name', cell: (one) => (one.backend ? html`<a href=${addressOf(['datasets', one.dataset])}>${one.dataset}</a>`
      : html`${one.dataset} <${Tag} kind="bad">its entry cannot be read</${Tag}>`) },
    { label: 'shape', cell: (one) => one.shape },
    { label: 'backend', cell: (one) => one.backend },
    { label: 'versions', number: true, cell: (one) => (one.shape !== 'rows' ? '' : one.max_versions === 0 ? 'all' : number(one.max_versions)) },
    { label: 'expires', cell: (one) => (one.ttl_ms ? `after ${span(one.ttl_ms)}` : '') },
    { label: 'survives', cell: (one) => one.durability || '' },
    { label: 'changes', cell: (one) => (one.keep_changes_ms ? `kept ${span(one.keep_changes_ms)}` : '') },
    { label: 'about', number: true, cell: (one) => (own(sizes.data, one.dataset) ? bytes(own(sizes.data, one.dataset).approximate_bytes) : '') },
    { label: 'entries', number: true, cell: (one) => (own(sizes.data, one.dataset) ? number(own(sizes.data, one.dataset).approximate_entries) : '') },
  ];
  return html`<h1>Datasets</h1><section class="panel">
    <div class="row"><${Field} label="Names with" type="search" value=${filter} onValue=${setFilter} />
      <span class="faint">${list.data ? `${found.length} of ${list.data.length}` : ''}${few ? '' : `; sizes are shown of at most ${kSizes}`}</span>
      ${may('admin') && html`<${Create} onDone=${list.again} />`}</div>
    <${Loaded} poll=${list}>${() => html`<${Table} caption="Datasets" columns=${columns} rows=${found} keyOf=${(one) => one.dataset} />`}</${Loaded}>
  </section>`;
}
