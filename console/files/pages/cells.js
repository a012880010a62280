// The rows of a dataset.
import { html, useState } from '../vendor/preact.js';
import { call, stringify, usePoll } from '../api.js';
import { Action, Bytes, Field, Loaded, Problem, usePages } from '../ui.js';
import { bytesFrom, bytesOf, command, fromHex, isTime, keyOf, lineFor, textOf, time } from '../format.js';

const kRows = 50;

/// A value that somebody has typed as text or as hexadecimal digits.
function bytesIn(text, hex) {
  if (!hex) return text;
  const value = fromHex(text);
  if (value === null) throw new Error('The value must be hexadecimal digits, two for each byte.');
  return value;
}
function shownBytes(text, hex) {
  return hex ? fromHex(text) ?? text : text;
}

/// The command of a put. It divides COLUMN=VALUE at the first '='.
function putLine(dataset, row, column, value, timestamp) {
  const name = bytesOf(column);
  if (name.includes(0x3d)) {
    return lineFor(stringify({ op: 'put_row', dataset, row, items: [{ column, value, timestamp: timestamp || undefined }] }));
  }
  return command('kv put', [dataset, row, bytesFrom(new Uint8Array([...name, 0x3d, ...bytesOf(value)]))], timestamp ? ['--timestamp', timestamp] : []);
}

export function Put({ dataset, row, column, onDone }) {
  const fields = [
    ...(row === undefined ? [{ name: 'row', label: 'Row', required: true }] : []),
    ...(column === undefined ? [{ name: 'column', label: 'Column', hint: 'May be empty' }] : []),
    { name: 'value', label: 'Value', kind: 'area' },
    { name: 'hex', label: 'The value is given as hexadecimal digits', kind: 'check' },
    { name: 'timestamp', label: 'Timestamp', hint: 'Milliseconds; empty: now' },
  ];
  const of = (values) => ({ row: row ?? values.row, column: column ?? values.column });
  return html`<${Action} label=${column === undefined ? 'Put a cell' : 'Put'} title=${`Put a cell into ${dataset}`} fields=${fields} onDone=${onDone}
    line=${(values) => putLine(dataset, of(values).row || 'ROW', of(values).column, shownBytes(values.value, values.hex), values.timestamp)}
    run=${(values) => call('put_row', { dataset, row: of(values).row, items: [{
      column: of(values).column, value: bytesIn(values.value, values.hex), timestamp: values.timestamp || undefined }] }).then(() => undefined)} />`;
}

function Time({ ms }) {
  return html`<time title=${isTime(ms) ? String(ms) : undefined} class="faint">${isTime(ms) ? time(ms) : String(ms)}</time>`;
}

/// A row with its columns, page by page.
function Row({ dataset, row, given, hex, options, writes, onChanged }) {
  const [items, setItems] = useState(given.items);
  const [marker, setMarker] = useState(undefined);  // undefined: what the scan gave
  const [error, setError] = useState(null);
  const more = async () => {
    try {
      const page = await call('get_row', { dataset, row, ...options, marker: marker || undefined, limit: 100 });
      setItems(marker ? [...items, ...page.items] : page.items);
      setMarker(page.marker);
      setError(null);
    } catch (problem) {
      setError(problem);
    }
  };
  return html`<section class="panel"><div class="row"><h3><${Bytes} value=${row} hex=${hex} what="row key" /></h3>
      ${writes && html`<${Put} dataset=${dataset} row=${row} onDone=${onChanged} />
        <${Action} label="Delete the row" kind="danger" about="All columns and all versions of this row are deleted." onDone=${onChanged}
          line=${() => command('kv delete', [dataset, row])} run=${() => call('delete_row', { dataset, row }).then(() => undefined)} />`}</div>
    <div class="scroll" tabindex="0" role="region" aria-label=${`Columns of ${textOf(row)}`}><table>
      <thead><tr><th scope="col">column</th><th scope="col">values, the newest first</th>${writes && html`<th scope="col"><span class="hidden">actions</span></th>`}</tr></thead>
      <tbody>${items.map((item) => html`<tr key=${keyOf(item.column)}><td><${Bytes} value=${item.column} hex=${hex} what="column" /></td>
        <td><ul class="cells">${item.cells.map((cell) => html`<li><${Bytes} value=${cell.value} hex=${hex} most=${2000} /> <${Time} ms=${cell.timestamp} /></li>`)}</ul></td>
        ${writes && html`<td><div class="row"><${Put} dataset=${dataset} row=${row} column=${item.column} onDone=${onChanged} />
          <${Action} label="Delete" title="Delete a column" kind="danger" about="All versions of this column are deleted." onDone=${onChanged}
            line=${() => command('kv delete', [dataset, row, item.column])}
            run=${() => call('delete_row', { dataset, row, columns: [item.column] }).then(() => undefined)} /></div></td>`}</tr>`)}</tbody></table></div>
    <${Problem} error=${error} />
    ${marker !== null && html`<button type="button" onClick=${more}>${marker === undefined ? 'Read the row anew, page by page' : 'More columns'}</button>`}</section>`;
}

export function Rows({ dataset, writes }) {
  const [form, setForm] = useState({ start: '', end: '', versions: '1', from: '', to: '' });
  const [asked, setAsked] = useState(form);
  const [hex, setHex] = useState(false);
  const key = JSON.stringify([dataset, asked]);
  const [marker, buttons] = usePages(key);
  const stamp = (text) => {
    if (text === '') return undefined;
    return /^\d+$/.test(text) ? text : String(Date.parse(/[zZ+]/.test(text.slice(10)) || text.length <= 10 ? text : `${text}Z`));
  };
  const options = { versions: asked.versions || undefined, start_timestamp: stamp(asked.from), end_timestamp: stamp(asked.to) };
  const page = usePoll((signal) => call('scan_rows', {
    dataset, ...options, limit: kRows, start_row: asked.start || undefined, end_row: asked.end || undefined, marker: marker || undefined }, { signal }),
  0, `${key} ${marker === null ? '' : JSON.stringify(marker)}`);
  const set = (name) => (value) => setForm({ ...form, [name]: value });
  return html`<form class="row" onSubmit=${(event) => { event.preventDefault(); setAsked({ ...form }); page.again(); }}>
      <${Field} label="From row" value=${form.start} onValue=${set('start')} />
      <${Field} label="Before row" value=${form.end} onValue=${set('end')} />
      <${Field} label="Versions" kind="number" size="4" value=${form.versions} onValue=${set('versions')} />
      <${Field} label="Cells from" placeholder="2026-01-31" value=${form.from} onValue=${set('from')} />
      <${Field} label="Cells before" placeholder="2026-02-01T12:00" value=${form.to} onValue=${set('to')} />
      <button class="main">Read</button>
      <${Field} kind="check" label="Bytes as hexadecimal digits" value=${hex} onValue=${setHex} />
      ${writes && html`<${Put} dataset=${dataset} onDone=${page.again} />`}</form>
    <${Loaded} poll=${page}>${(data) => html`${data.rows.length === 0 && html`<p class="empty">${data.marker ? 'Nothing on this page; more may follow.' : 'There are no such rows.'}</p>`}
      ${data.rows.map((one) => html`<${Row} key=${`${keyOf(one.row)} ${page.at}`} dataset=${dataset} row=${one.row} given=${one} hex=${hex} options=${options}
        writes=${writes} onChanged=${page.again} />`)}
      ${buttons(data.marker)}`}</${Loaded}>`;
}
