// What all pages are made of.
import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { hexOf, number, textOf } from './format.js';

/// The page, and what stands behind it in the address: "#/datasets/events?versions=3".
export function readAddress() {
  const [path, query] = location.hash.replace(/^#\/?/, '').split('?');
  return { path: wordsOf(path), query: new URLSearchParams(query || '') };
}
/// The words of a path. One with a broken % is a single word, which is the name of no page.
function wordsOf(path) {
  try {
    return path.split('/').map(decodeURIComponent);
  } catch (error) {
    return [path];
  }
}
export function addressOf(path, query) {
  const text = query ? new URLSearchParams(query).toString() : '';
  return `#/${path.map(encodeURIComponent).join('/')}${text ? `?${text}` : ''}`;
}

export function Problem({ error, again }) {
  if (!error) return null;
  return html`<div class="problem" role="alert"><strong>${error.code || 'Error'}</strong> ${error.message || String(error)}
    ${error.inDoubt && html`<p>It is in doubt whether this was done: look before you do it again.</p>`}
    ${again && html` <button type="button" onClick=${again}>Try again</button>`}</div>`;
}

/// What was loaded, or that it is being loaded, or why it is not. What was loaded before stays while it cannot be loaded
/// again.
export function Loaded({ poll, children }) {
  return html`<${Problem} error=${poll.error} again=${poll.error && poll.again} />
    ${poll.data !== undefined ? children(poll.data) : !poll.error && html`<p class="loading">Loading...</p>`}`;
}

/// columns: [{name, label, cell(row), number}]; rows: each has a key by `keyOf`.
export function Table({ caption, columns, rows, keyOf, empty = 'There are none.' }) {
  if (rows.length === 0) return html`<p class="empty">${empty}</p>`;
  return html`<div class="scroll" tabindex="0" role="region" aria-label=${caption}><table>
    <caption class="hidden">${caption}</caption>
    <thead><tr>${columns.map((column) => html`<th scope="col" class=${column.number ? 'number' : ''}>${column.label}</th>`)}</tr></thead>
    <tbody>${rows.map((row, index) => html`<tr key=${keyOf ? keyOf(row) : index}>
      ${columns.map((column) => html`<td class=${column.number ? 'number' : ''}>${column.cell(row)}</td>`)}</tr>`)}</tbody>
  </table></div>`;
}

/// name: value, below each other.
export function Facts({ facts }) {
  return html`<dl class="facts">${facts.filter((fact) => fact && fact[1] !== undefined && fact[1] !== '')
    .map(([name, value]) => html`<div><dt>${name}</dt><dd>${value}</dd></div>`)}</dl>`;
}

/// Bytes that somebody has stored. Of a long text the beginning and the end are shown, so that keys with the same beginning
/// can be told apart, and a button shows all of it.
///
/// what   What a screen reader calls them: "value".
/// most   Characters that are shown at first.
export function Bytes({ value, hex, what = 'value', most = 200 }) {
  const [all, setAll] = useState(false);
  const text = hex ? hexOf(value) : textOf(value);
  if (text === '') return html`<span class="faint">(empty)</span>`;
  const kind = typeof value === 'string' || hex ? '' : 'binary';
  if (text.length <= most) return html`<code class=${kind}>${text}</code>`;
  const end = most / 4;
  const label = all ? 'Show less' : `Show all ${number(text.length)} characters`;
  return html`<code class=${kind}>${all ? text : `${text.slice(0, most - end)} … ${text.slice(-end)}`}</code>
    <button type="button" class="more" aria-expanded=${all} aria-label=${`${label} of the ${what}`} onClick=${() => setAll(!all)}>${label}</button>`;
}

export function Tag({ kind = '', children }) { return html`<span class=${`tag ${kind}`}>${children}</span>`; }

export function Command({ text }) {
  const [copied, setCopied] = useState(false);
  const copy = async () => {
    try {
      await navigator.clipboard.writeText(text);
      setCopied(true);
      setTimeout(() => setCopied(false), 2000);
    } catch (error) {
      setCopied(false);  // the text can be selected
    }
  };
  return html`<div class="command"><code>${text}</code>
    <button type="button" onClick=${copy} aria-label="Copy the command">${copied ? 'Copied' : 'Copy'}</button></div>`;
}

let fields = 0;
/// An input with its label. kind: text, number, select, check, area.
export function Field({ label, hint, kind = 'text', value, onValue, options, required, wide, ...others }) {
  const id = useRef('');
  if (!id.current) id.current = `field-${++fields}`;
  const common = { id: id.current, required, 'aria-describedby': hint ? `${id.current}-hint` : undefined, ...others };
  const input = kind === 'select'
    ? html`<select ...${common} value=${value} onChange=${(event) => onValue(event.target.value)}>
        ${options.map((option) => html`<option value=${option} selected=${option === value}>${option}</option>`)}</select>`
    : kind === 'area'
      ? html`<textarea rows="6" spellcheck="false" ...${common} value=${value} onInput=${(event) => onValue(event.target.value)} />`
      : kind === 'check'
        ? html`<input type="checkbox" ...${common} checked=${value} onChange=${(event) => onValue(event.target.checked)} />`
        : html`<input type=${kind === 'number' ? 'text' : kind} inputmode=${kind === 'number' ? 'numeric' : undefined}
            autocomplete="off" spellcheck="false" ...${common} value=${value} onInput=${(event) => onValue(event.target.value)} />`;
  return html`<div class=${`field kind-${kind} ${wide ? 'wide' : ''}`}><label for=${id.current}>${label}</label>${input}
    ${hint && html`<small id=${`${id.current}-hint`}>${hint}</small>`}</div>`;
}

/// A window over the page. The browser keeps the focus in it, and Escape closes it.
export function Dialog({ title, onClose, children }) {
  const element = useRef(null);
  useEffect(() => {
    const before = document.activeElement;
    element.current.showModal();
    return () => before && before.focus && before.focus();
  }, []);
  return html`<dialog ref=${element} aria-label=${title} onClose=${onClose} onCancel=${(event) => { event.preventDefault(); onClose(); }}>
    <header><h2>${title}</h2><button type="button" class="quiet" onClick=${onClose} aria-label="Close">✕</button></header>
    ${children}</dialog>`;
}

/// Something that changes things. It is shown as a button; then as a window with what it needs, the equal command of
/// kv, and, where it cannot be taken back, the name to be typed; then it is done, and the window says how it went.
///
/// fields   [{name, label, kind, options, value, hint, required, shown(values)}]
/// line     (values) => the command of kv.
/// plan     (values) => what would be done, as text or lines; null: there is no such question.
/// name     What has to be typed; undefined: nothing.
/// run      (values) => done; what it returns is shown if it is text or lines.
/// shown    Whether it is possible now. A window that is open stays until it is closed.
export function Action({ label, title = label, about, fields = [], line, plan, name, run, onDone, kind = '', shown = true }) {
  const [open, setOpen] = useState(false);
  return html`${shown && html`<button type="button" class=${kind} onClick=${() => setOpen(true)}>${label}</button>`}
    ${open && html`<${ActionWindow} ...${{ label, title, about, fields, line, plan, name, run, kind }}
      onClose=${(done) => { setOpen(false); if (done && onDone) onDone(); }} />`}`;
}

function ActionWindow({ label, title, about, fields, line, plan, name, run, kind, onClose }) {
  const [values, setValues] = useState(() =>
    Object.fromEntries(fields.map((field) => [field.name, field.value ?? (field.kind === 'check' ? false : field.options ? field.options[0] : '')])));
  const [typed, setTyped] = useState('');
  const [state, setState] = useState({});
  const shown = fields.filter((field) => !field.shown || field.shown(values));
  const attempt = async (event, what, named) => {
    event.preventDefault();
    event.stopPropagation();  // the window may stand within a form of the page
    setState({ busy: named });
    try {
      const told = await what(values);
      setState(named === 'plan' ? { planned: told } : { done: true, told });
    } catch (error) {
      setState({ error });
    }
  };
  const busy = Boolean(state.busy);
  // What is under way goes on in the server, and its end must be seen.
  const close = () => { if (!busy) onClose(Boolean(state.done)); };
  const ready = !busy && !state.done && (name === undefined || typed === name);
  const set = (field, value) => {
    setValues((before) => ({ ...before, [field.name]: value }));
    setState({});
  };
  return html`<${Dialog} title=${title} onClose=${close}>
    <form onSubmit=${(event) => attempt(event, run, 'run')}>
      ${about && html`<p>${about}</p>`}
      ${!state.done && shown.map((field) => html`<${Field} key=${field.name} label=${field.label} hint=${field.hint} kind=${field.kind}
        options=${field.options} required=${field.required} value=${values[field.name]} wide disabled=${busy} onValue=${(value) => set(field, value)} />`)}
      ${line && html`<p class="equal">The same by command:</p><${Command} text=${line(values)} />`}
      ${state.planned !== undefined && html`<${Told} title="It would:" told=${state.planned} />`}
      ${state.done && html`<p class="good" role="status">Done.</p>`}
      ${state.done && state.told && html`<${Told} told=${state.told} />`}
      <${Problem} error=${state.error} />
      ${name !== undefined && !state.done && html`<${Field} label=${`Type ${name} to confirm`} value=${typed} onValue=${setTyped} wide />`}
      <footer>
        ${plan && !state.done && html`<button type="button" disabled=${busy} onClick=${(event) => attempt(event, plan, 'plan')}>
          ${state.busy === 'plan' ? 'Looking...' : 'What would it do?'}</button>`}
        ${!state.done && html`<button type="submit" class=${kind || 'main'} disabled=${!ready}>${state.busy === 'run' ? 'Working...' : label}</button>`}
        <button type="button" disabled=${busy} onClick=${close}>${state.done ? 'Close' : 'Cancel'}</button>
      </footer>
    </form></${Dialog}>`;
}

export function Told({ title, told }) {
  const lines = Array.isArray(told) ? told : [told];
  return html`<div class="told" role="status">${title && html`<p>${title}</p>`}
    ${lines.length === 0 ? html`<p class="faint">Nothing stands against it.</p>` : html`<ul>${lines.map((one) => html`<li>${one}</li>`)}</ul>`}</div>`;
}

/// Pages that are reached one after the other by markers: returns [marker, buttons].
export function usePages(key) {
  const [state, setState] = useState({ key, markers: [null] });
  const current = state.key === key ? state : { key, markers: [null] };
  const marker = current.markers[current.markers.length - 1];
  const buttons = (next) => html`<nav class="pages" aria-label="Pages">
    <button type="button" disabled=${current.markers.length === 1}
      onClick=${() => setState({ key, markers: current.markers.slice(0, -1) })}>Back</button>
    <span>Page ${current.markers.length}</span>
    <button type="button" disabled=${!next} onClick=${() => setState({ key, markers: [...current.markers, next] })}>Next</button></nav>`;
  return [marker, buttons];
}
