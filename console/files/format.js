// How values, sizes, times and commands are written.

/// Bytes in JSON: a string, or {b64}. Returns them as an array of numbers.
export function bytesOf(value) {
  if (typeof value === 'string') return new TextEncoder().encode(value);
  return Uint8Array.from(atob(value.b64), (c) => c.charCodeAt(0));
}
export function bytesFrom(array) {
  try {
    return new TextDecoder('utf-8', { fatal: true, ignoreBOM: true }).decode(array);
  } catch (error) {
    return { b64: btoa(String.fromCharCode(...array)) };
  }
}
export function hexOf(value) {
  return Array.from(bytesOf(value), (byte) => byte.toString(16).padStart(2, '0')).join(' ');
}
/// Returns the bytes that hexadecimal digits stand for; null if they are none.
export function fromHex(text) {
  const digits = text.replace(/\s+/g, '');
  if (digits.length % 2 || /[^0-9a-f]/i.test(digits)) return null;
  return bytesFrom(Uint8Array.from(digits.match(/../g) || [], (two) => parseInt(two, 16)));
}
const kHidden = /[\u0000-\u001f\u007f-\u009f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\\]/g;
/// Bytes as text on one line: what cannot be seen, or would change how the line is read, as \xNN or \uNNNN.
export function textOf(value) {
  if (typeof value !== 'string') {
    return Array.from(bytesOf(value), (byte) =>
      byte >= 0x20 && byte < 0x7f && byte !== 0x5c ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`)
      .join('');
  }
  return value.replace(kHidden, (c) => {
    if (c === '\\') return '\\\\';
    const code = c.charCodeAt(0);
    return code < 0x80 ? `\\x${code.toString(16).padStart(2, '0')}` : `\\u${code.toString(16).padStart(4, '0')}`;
  });
}
export function same(a, b) { return keyOf(a) === keyOf(b); }
/// A string by which bytes can be told apart.
export function keyOf(value) { return typeof value === 'string' ? `t${value}` : `b${value.b64}`; }

export function number(value) {
  if (value === null || value === undefined) return '';
  // Whole numbers beyond 2^53 are strings, and keep their digits.
  return typeof value === 'number' ? value.toLocaleString('en', { maximumFractionDigits: 12 }) : value.toString();
}
/// Few digits: 0.0123, 1.23, 12.3, 1,234.
export function short(value) {
  if (!Number.isFinite(value)) return '';
  const size = Math.abs(value);
  return value.toLocaleString('en', { maximumFractionDigits: size >= 100 ? 0 : size >= 10 ? 1 : size >= 1 ? 2 : 4 });
}
export function bytes(count) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let value = Number(count);
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) { value /= 1024; ++unit; }
  return `${unit === 0 ? value : value.toFixed(value < 10 ? 1 : 0)} ${units[unit]}`;
}
/// Microseconds.
export function micros(us) {
  if (us < 1000) return `${us} µs`;
  if (us < 1e6) return `${short(us / 1e3)} ms`;
  return `${short(us / 1e6)} s`;
}
/// A stretch of time: "3 d 4 h", "12 s".
export function span(ms) {
  const parts = [[86_400_000, 'd'], [3_600_000, 'h'], [60_000, 'min'], [1000, 's']];
  let left = Number(ms);
  if (left < 1000) return `${Math.round(left)} ms`;
  const text = [];
  for (const [size, name] of parts) {
    const count = Math.floor(left / size);
    left -= count * size;
    if (count) text.push(`${count} ${name}`);
    if (text.length === 2) break;
  }
  return text.join(' ');
}
/// Milliseconds since 1970 as a date and time of UTC.
export function time(ms) {
  const date = new Date(Number(ms));
  return Number.isNaN(date.getTime()) ? String(ms) : date.toISOString().replace('T', ' ').replace(/\.000Z$/, ' UTC').replace(/Z$/, ' UTC');
}
export function isTime(ms) { return Number(ms) > 946_684_800_000 && Number(ms) < 4_102_444_800_000; }

/// Bytes as `kv --escaped` reads them: \xNN for each byte that a terminal would act on.
function escapeBytes(value) {
  return Array.from(bytesOf(value), (byte) =>
    byte === 0x5c ? '\\\\' : byte >= 0x20 && byte < 0x7f ? String.fromCharCode(byte) : `\\x${byte.toString(16).padStart(2, '0')}`).join('');
}
/// Whether text has something that a terminal would act on, or that would change how it is read.
function isHidden(text) { return text.replace(/\\/g, '').search(kHidden) >= 0; }
function quoted(word) { return /^[\w@%+=:,./-]+$/.test(word) ? word : `'${word.replace(/'/g, "'\\''")}'`; }

/// A command line: what it is ("kv delete"), its options, and what it is about, which may be bytes and may begin with a dash.
/// Options that are undefined are left out.
export function command(verb, names = [], options = []) {
  const given = options.flat().filter((word) => word !== undefined && word !== null).map(String);
  const escaped = names.some((name) => typeof name === 'object' || isHidden(String(name)));
  const shown = names.map((name) => (escaped ? escapeBytes(typeof name === 'object' ? name : String(name)) : String(name)));
  const dash = shown.some((name) => name.startsWith('-')) ? ['--'] : [];
  const words = escaped ? verb.replace(/^kv /, 'kv --escaped ') : verb;
  return [words, ...[...given, ...dash, ...shown].map(quoted)].join(' ');
}
/// A document in JSON on one line, in which nothing is hidden.
export function oneLine(json) {
  return json.replace(/[\n\r\t]/g, ' ').replace(kHidden, (c) => (c === '\\' ? c : `\\u${c.charCodeAt(0).toString(16).padStart(4, '0')}`));
}
/// A request that options of a command cannot say, as a line for `kv exec`.
export function lineFor(json) { return `printf '%s\\n' ${quoted(oneLine(json))} | kv exec`; }
/// What an object has itself under a name; nothing that all objects have ("constructor").
export function own(object, name) { return object && Object.hasOwn(object, name) ? object[name] : undefined; }
