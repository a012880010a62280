// One dataset: its settings, its data, who follows its changes.
import { html, useState } from '../vendor/preact.js';
import { RawJson, call, has, may, stringify, usePoll, useSession } from '../api.js';
import { Action, Facts, Field, Loaded, Problem, Table, Tag, addressOf, usePages } from '../ui.js';
import { bytes, command, number, oneLine, span, time } from '../format.js';
import { kSettings, numberIn, settingWords, settingsOf } from './datasets.js';
import { Rows } from './cells.js';

/// A document that somebody has typed, which is sent as it is.
function documentIn(text) {
  JSON.parse(text);  // throws, with the place of the mistake
  return new RawJson(text);
}

function ObjectView({ dataset, object, writes, onChanged }) {
  return html`<section class="panel"><div class="row"><h3>${object.object_id}</h3>
      ${object.timestamp && html`<span class="faint">${time(object.timestamp)}</span>`}
      ${object.data.active === false && html`<${Tag} kind="warn">deleted softly</${Tag}>`}
      ${writes && html`<${Action} label="Change" title="Change an object" about="Fields of the patch replace those of the object; null removes one (RFC 7396)."
          fields=${[{ name: 'patch', label: 'Patch', kind: 'area', value: '{}', required: true }]} onDone=${onChanged}
          line=${(values) => command('kv object update', [dataset, object.object_id, oneLine(values.patch)])}
          run=${(values) => call('update_object', { dataset, object_id: object.object_id, merge_patch: documentIn(values.patch) }).then(() => undefined)} />
        <${Action} label="Delete" title="Delete an object" kind="danger" fields=${[{ name: 'hard', label: 'For good; else it is hidden ("active": false)', kind: 'check' }]} onDone=${onChanged}
          line=${(values) => command('kv object delete', [dataset, object.object_id], values.hard ? ['--hard'] : [])}
          run=${(values) => call('delete_object', { dataset, object_id: object.object_id, hard: values.hard }).then(() => undefined)} />`}</div>
    <pre>${stringify(object.data, 2)}</pre></section>`;
}

function Objects({ dataset, writes }) {
  const [form, setForm] = useState({ id: '', start: '', inactive: false });
  const [asked, setAsked] = useState(form);
  const key = JSON.stringify([dataset, asked]);
  const [marker, buttons] = usePages(key);
  const page = usePoll(async (signal) => {
    if (asked.id) {
      const one = await call('get_object', { dataset, object_id: numberIn(asked.id), include_inactive: asked.inactive }, { signal });
      return { objects: [{ object_id: asked.id, ...one }], marker: null };
    }
    return call('scan_objects', { dataset, start_id: asked.start ? numberIn(asked.start) : undefined, include_inactive: asked.inactive, limit: 50,
      marker: marker || undefined }, { signal });
  }, 0, `${key} ${JSON.stringify(marker)}`);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  return html`<form class="row" onSubmit=${(event) => { event.preventDefault(); setAsked({ ...form }); page.again(); }}>
      <${Field} label="The object with the ID" kind="number" value=${form.id} onValue=${set('id')} />
      <${Field} label="or all from the ID" kind="number" value=${form.start} onValue=${set('start')} />
      <${Field} kind="check" label="Also those that were deleted softly" value=${form.inactive} onValue=${set('inactive')} />
      <button class="main">Read</button>
      ${writes && html`<${Action} label="Create an object" fields=${[
          { name: 'data', label: 'Its fields, as JSON', kind: 'area', value: '{}', required: true },
          { name: 'near', label: 'On the shard of this ID', hint: 'Empty: on any' }]} onDone=${page.again}
        line=${(values) => command('kv object create', [dataset, oneLine(values.data)], values.near ? ['--near', values.near] : [])}
        run=${async (values) => `Its ID is ${(await call('create_object', { dataset, data: documentIn(values.data), near: values.near ? numberIn(values.near) : undefined })).object_id}.`} />`}</form>
    <${Loaded} poll=${page}>${(data) => html`${data.objects.length === 0 && html`<p class="empty">${data.marker ? 'Nothing on this page; more may follow.' : 'There are no such objects.'}</p>`}
      ${data.objects.map((object) => html`<${ObjectView} key=${object.object_id} ...${{ dataset, object, writes }} onChanged=${page.again} />`)}
      ${buttons(data.marker)}`}</${Loaded}>`;
}

function Mappings({ dataset, writes }) {
  const [form, setForm] = useState({ from: '', order: 'desc', joined: false });
  const [asked, setAsked] = useState(form);
  const key = JSON.stringify([dataset, asked]);
  const [marker, buttons] = usePages(key);
  const page = usePoll(async (signal) => {
    const common = { dataset, limit: 50, marker: marker || undefined };
    if (!asked.from) return call('scan_mappings', common, { signal });
    const of = { ...common, from: numberIn(asked.from), order: asked.order };
    const [list, { count }] = await Promise.all([call(asked.joined ? 'list_objects' : 'list_mapping', of, { signal }),
      call('count_mapping', { dataset, from: numberIn(asked.from) }, { signal })]);
    const entries = (list.entries || list.objects).map((entry) => ({ from: asked.from, ...entry }));
    return { entries, marker: list.marker, count };
  }, 0, `${key} ${JSON.stringify(marker)}`);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  const columns = [
    { label: 'from', cell: (entry) => entry.from },
    { label: 'to', cell: (entry) => entry.to },
    { label: 'sequence', number: true, cell: (entry) => String(entry.sequence) },
    ...(asked.joined && asked.from ? [{ label: 'object', cell: (entry) => (entry.ok ? html`<code>${stringify(entry.data)}</code>`
      : html`<span class="warn">${entry.error ? entry.error.message : ''}</span>`) }] : []),
    ...(writes ? [{ label: 'actions', cell: (entry) => html`<${Action} label="Remove" title="Remove an entry" kind="danger" onDone=${page.again}
      line=${() => command('kv mapping remove', [dataset, entry.from, entry.to])}
      run=${() => call('remove_mapping', { dataset, from: entry.from, to: entry.to }).then(() => undefined)} />` }] : []),
  ];
  return html`<form class="row" onSubmit=${(event) => { event.preventDefault(); setAsked({ ...form }); page.again(); }}>
      <${Field} label="Entries of the ID" kind="number" value=${form.from} onValue=${set('from')} hint="Empty: of all" />
      <${Field} label="Order" kind="select" options=${['desc', 'asc']} value=${form.order} onValue=${set('order')} />
      <${Field} kind="check" label="With the objects that they point to" value=${form.joined} onValue=${set('joined')} />
      <button class="main">Read</button>
      ${writes && html`<${Action} label="Add an entry" fields=${[{ name: 'from', label: 'From', value: form.from, required: true },
          { name: 'to', label: 'To', required: true }, { name: 'sequence', label: 'Sequence', hint: 'Empty: the time in ms' }]} onDone=${page.again}
        line=${(values) => command('kv mapping add', [dataset, values.from || 'FROM', values.to || 'TO'], values.sequence ? ['--sequence', values.sequence] : [])}
        run=${(values) => call('add_mapping', { dataset, from: numberIn(values.from), to: numberIn(values.to),
          sequence: values.sequence ? numberIn(values.sequence) : undefined }).then(() => undefined)} />`}</form>
    <${Loaded} poll=${page}>${(data) => html`${data.count !== undefined && html`<p>${number(data.count)} entries</p>`}
      <${Table} caption="Entries" columns=${columns} rows=${data.entries} keyOf=${(entry) => `${entry.from} ${entry.to}`} empty="There are no such entries." />
      ${buttons(data.marker)}`}</${Loaded}>`;
}

function Consumers({ dataset, writes }) {
  const list = usePoll(async (signal) => (await call('list_consumers', { dataset }, { signal })).consumers, 10_000, dataset);
  return html`<section class="panel"><h2>Who follows its changes</h2><${Loaded} poll=${list}>${(consumers) => html`<${Table} caption="Consumers" rows=${consumers}
    keyOf=${(one) => one.name} empty="Nobody has said so." columns=${[
      { label: 'consumer', cell: (one) => one.name },
      { label: 'behind', number: true, cell: (one) => (one.token === null ? html`<${Tag} kind="bad">lost</${Tag}>` : one.lag_ms ? span(one.lag_ms) : 'nothing') },
      { label: 'set', cell: (one) => time(one.set_at) },
      ...(writes ? [{ label: 'actions', cell: (one) => html`<${Action} label="Drop" title="Drop a consumer" kind="danger" about="Nothing is kept for it any more." onDone=${list.again}
        line=${() => command('kv consumers drop', [dataset, one.name])} run=${() => call('drop_consumer', { dataset, name: one.name }).then(() => undefined)} />` }] : [])]} />`}</${Loaded}></section>`;
}

export function Dataset({ name }) {
  useSession();
  const spec = usePoll((signal) => call('get_dataset', { dataset: name }, { signal }), 15_000, name);
  const stats = usePoll((signal) => call('get_stats', { dataset: name }, { signal }), 60_000, name);
  const writes = may('write', name);
  return html`<p><a href="#/datasets">Datasets</a></p><h1>${name}</h1>
    <${Loaded} poll=${spec}>${(one) => html`<section class="panel"><${Facts} facts=${[
      ['shape', one.shape], ['backend', one.engine ? `${one.backend} (${one.engine})` : one.backend],
      one.shape === 'rows' && ['versions', one.max_versions === 0 ? 'all' : number(one.max_versions)],
      one.shape === 'rows' && ['cells expire', one.ttl_ms ? `after ${span(one.ttl_ms)}` : 'never'],
      one.shape === 'objects' && ['type', number(one.type)], ['a write survives the', one.durability],
      ['changes', one.keep_changes_ms ? `are kept for ${span(one.keep_changes_ms)}` : 'are not recorded'],
      ['compression', one.compression], ['about', stats.data && bytes(stats.data.approximate_bytes)],
      ['entries, about', stats.data && number(stats.data.approximate_entries)]]} />
      <div class="row">${may('admin', name) && html`
        <${Action} label="Alter" title=${`Alter ${name}`} about="What stays empty stays as it is." onDone=${spec.again}
          fields=${kSettings.filter((field) => one.shape === 'rows' || !['max_versions', 'ttl_ms'].includes(field.name))}
          line=${(values) => command('kv dataset alter', [name], settingWords(values))}
          run=${(values) => call('alter_dataset', { dataset: name, ...settingsOf(values) }).then(() => undefined)} />
        <${Action} label="Remove what is expired" title=${`Compact ${name}`} about="Expired and surplus cells leave the disk now; no read changes its answer. It may take long."
          line=${() => command('kv compact', [name])} run=${() => call('compact', { dataset: name }).then(() => undefined)} />
        ${has('migrations') && html`<a href=${addressOf(['migrations', name])}>Migration</a>`}
        <${Action} label="Drop" title=${`Drop ${name}`} kind="danger" about="The dataset and all of its data are removed. There is no way back but a backup." name=${name}
          onDone=${() => { location.hash = '#/datasets'; }}
          line=${() => command('kv dataset drop', [name], ['--yes'])} run=${() => call('drop_dataset', { dataset: name }).then(() => undefined)} />`}</div>
      <${Problem} error=${stats.error} /></section>
      ${one.keep_changes_ms ? html`<${Consumers} dataset=${name} writes=${writes} />` : null}
      <section><h2>${{ rows: 'Rows', objects: 'Objects', mappings: 'Mappings' }[one.shape]}</h2>
        ${one.shape === 'rows' ? html`<${Rows} dataset=${name} writes=${writes} />`
          : one.shape === 'objects' ? html`<${Objects} dataset=${name} writes=${writes} />` : html`<${Mappings} dataset=${name} writes=${writes} />`}</section>`}</${Loaded}>`;
}
