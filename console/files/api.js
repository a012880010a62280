// Calls to the server's HTTP API, who calls, and polling.
import { useEffect, useRef, useState } from './vendor/preact.js';

/// Integers beyond 2^53 stay whole where the browser tells the digits of a number (BigInt in what is returned).
export function parse(text) {
  return JSON.parse(text, (key, value, context) =>
    typeof value === 'number' && context && /^-?\d+$/.test(context.source) && !Number.isSafeInteger(value)
      ? BigInt(context.source) : value);
}
/// The opposite. What stands in a RawJson is sent as it is: a document that somebody typed.
export class RawJson {
  constructor(text) { this.text = text; }
}
export function stringify(value, space = 0, indent = '') {
  if (value instanceof RawJson) return value.text;
  if (typeof value === 'bigint') return value.toString();
  if (value === null || typeof value !== 'object') return JSON.stringify(value);
  const inner = indent + ' '.repeat(space);
  const list = Array.isArray(value);
  const parts = list
    ? value.map((one) => stringify(one === undefined ? null : one, space, inner))
    : Object.entries(value).filter(([, one]) => one !== undefined)
        .map(([name, one]) => JSON.stringify(name) + (space ? ': ' : ':') + stringify(one, space, inner));
  if (parts.length === 0) return list ? '[]' : '{}';
  const [open, close] = list ? '[]' : '{}';
  return space ? `${open}\n${inner}${parts.join(`,\n${inner}`)}\n${indent}${close}` : open + parts.join(',') + close;
}

/// An error that the server answered with, or why there was no answer (code UNREACHABLE).
export class ApiError extends Error {
  constructor(code, message, inDoubt = false) {
    super(message);
    this.code = code;
    this.inDoubt = inDoubt;
  }
}

let token = '';  // in memory only: it is gone with the page
const listeners = new Set();
/// Who calls, and what it may do: the answer of get_server, or null while that is not known.
export let session = null;

function tell() { listeners.forEach((listener) => listener()); }

export async function call(operation, fields = {}, { signal } = {}) {
  const headers = { 'Content-Type': 'application/json' };
  if (token) headers.Authorization = `Bearer ${token}`;
  let answer;
  let text;
  try {
    answer = await fetch(`v1/${operation}`, { method: 'POST', headers, body: stringify(fields), signal, cache: 'no-store' });
    text = await answer.text();
  } catch (error) {
    if (error.name === 'AbortError') throw error;  // nobody waits for it any more
    throw new ApiError('UNREACHABLE', 'The server does not answer. This page tries again by itself.');
  }
  let body;
  try {
    body = parse(text);
  } catch (error) {
    throw new ApiError('UNREACHABLE', `What answered is not the server: it sent status ${answer.status} and no JSON.`);
  }
  if (body.ok) return body;
  const { code, message, in_doubt: inDoubt } = body.error;
  if (code === 'UNAUTHENTICATED' && session && session.caller !== undefined) {
    session = { ...session, caller: undefined, expired: true };
    tell();
  }
  throw new ApiError(code, message, inDoubt);
}

/// Finds out who calls with this token. Returns whether the server knows it.
export async function signIn(given) {
  const before = token;
  token = given;
  try {
    session = await call('get_server');
  } catch (error) {
    token = before;
    throw error;
  }
  const known = session.caller !== undefined;
  if (!known) token = '';
  tell();
  return known;
}
export function signOut() {
  token = '';
  session = { ...session, caller: undefined };
  tell();
}

/// Returns the session, and draws the caller again when it changes.
export function useSession() {
  const [, draw] = useState(0);
  useEffect(() => {
    const listener = () => draw((count) => count + 1);
    listeners.add(listener);
    return () => listeners.delete(listener);
  }, []);
  return session;
}

const kRights = ['none', 'read', 'write', 'admin'];
/// Returns whether the caller has a right ("read", "write", "admin") on a dataset; "*": on all of them.
export function may(right, dataset = '*') {
  if (!session || !session.rights) return false;
  const rights = session.rights;
  const given = Object.hasOwn(rights, dataset) ? rights[dataset] : rights['*'];
  return kRights.indexOf(given) >= kRights.indexOf(right);
}
/// Returns whether the caller has it on any dataset.
export function mayAnywhere(right) { return may(right) || datasetsWith(right).length > 0; }
/// Returns the names of the datasets for which the caller's rights say so by name.
export function datasetsWith(right) {
  return session && session.rights ? Object.keys(session.rights).filter((name) => name !== '*' && !name.includes('/') && may(right, name)) : [];
}
/// Returns whether the server has a part: "migrations", "backups", "shard_maps", "shard_operations".
export function has(part) { return Boolean(session && session.parts && session.parts.includes(part)); }

/// Calls `load` now and then again and again, as long as the page is looked at; after errors ever more rarely. Returns
/// {data, error, at, again}. `key` says what is loaded: another one begins anew.
export function usePoll(load, everyMs, key = '') {
  const [state, setState] = useState({ key });
  const latest = useRef(load);
  latest.current = load;
  const wake = useRef(() => {});
  useEffect(() => {
    let stopped = false;
    let timer = 0;
    let running = false;
    let failures = 0;
    let waits = false;
    let wanted = false;  // again, as soon as this time is over
    const abort = new AbortController();
    const turn = async () => {
      if (stopped) return;
      wanted = running;
      if (running) return;
      waits = document.hidden;
      if (waits) return;  // until the page is looked at
      running = true;
      let away = false;
      clearTimeout(timer);
      try {
        // A network that swallows everything must not keep the page waiting for ever.
        const data = await latest.current(AbortSignal.any([abort.signal, AbortSignal.timeout(everyMs ? 60_000 : 300_000)]));
        failures = 0;
        if (!stopped) setState({ key, data, at: Date.now() });
      } catch (error) {
        ++failures;
        away = ['UNREACHABLE', 'UNAVAILABLE'].includes(error.code);
        if (!stopped) setState((before) => ({ ...(before.key === key ? before : { key }), error }));
      }
      running = false;
      if (wanted) return turn();
      const base = everyMs || (away ? 2000 : 0);
      // A server that is away costs little to ask, and is to be seen soon when it is back.
      if (!stopped && base) timer = setTimeout(turn, Math.min(away ? 15_000 : 60_000, base * 2 ** Math.min(failures, 5)));
    };
    const look = () => { if (!document.hidden && waits) turn(); };
    wake.current = turn;
    document.addEventListener('visibilitychange', look);
    turn();
    return () => {
      stopped = true;
      abort.abort();
      clearTimeout(timer);
      document.removeEventListener('visibilitychange', look);
    };
  }, [key, everyMs]);
  const current = state.key === key ? state : {};
  return { ...current, again: () => wake.current() };
}
