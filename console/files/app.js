// The console: who calls, and which page is shown.
import { html, render, useEffect, useRef, useState } from './vendor/preact.js';
import { has, may, mayAnywhere, signIn, signOut, useSession } from './api.js';
import { Field, Problem, readAddress } from './ui.js';
import { Overview } from './pages/overview.js';
import { Datasets } from './pages/datasets.js';
import { Dataset } from './pages/dataset.js';
import { Reports } from './pages/reports.js';
import { Migrations } from './pages/migrations.js';
import { Shards } from './pages/shards.js';
import { Backups } from './pages/backups.js';

const kPages = [
  { path: '', name: 'Overview', page: Overview },
  { path: 'datasets', name: 'Datasets', page: ({ path }) => (path[1] ? html`<${Dataset} key=${path[1]} name=${path[1]} />` : html`<${Datasets} />`) },
  { path: 'reports', name: 'Reports', page: Reports },
  { path: 'migrations', name: 'Migrations', page: Migrations, shown: () => has('migrations') && mayAnywhere('admin') },
  { path: 'shards', name: 'Shards', page: Shards, shown: () => has('shard_maps') && may('admin') },
  { path: 'backups', name: 'Backups', page: Backups, shown: () => has('backups') && may('read') },
];

/// In place of a page that is not there, or not for this caller.
function NoPage({ path }) {
  const known = kPages.find((page) => page.path === path[0]);
  return html`<h1>${known ? known.name : 'No such page'}</h1><section class="panel"><p>${known
    ? `The page ${known.name} is not shown: your token needs the right to what is on it, or this server does not have it.`
    : html`The console has no page at <code>#/${path.join('/')}</code>.`} Choose one above.</p></section>`;
}

function SignIn({ session, error }) {
  const [token, setToken] = useState('');
  const [state, setState] = useState({ error });
  const send = async (event) => {
    event.preventDefault();
    setState({ busy: true });
    try {
      const known = await signIn(token.trim());
      setState(known ? {} : { error: { code: 'UNAUTHENTICATED', message: 'The server does not know this token.' } });
      setToken('');
    } catch (problem) {
      setState({ error: problem });
    }
  };
  return html`<main class="panel sign-in"><h1>KVStore</h1>
    ${session && session.expired && html`<p class="warn" role="status">The server does not know your token any more.</p>`}
    <p>Paste a token of this server. It stays in the memory of this page, and is gone when the page is closed.</p>
    <form onSubmit=${send}><${Field} label="Token" kind="password" value=${token} onValue=${setToken} required wide />
      <${Problem} error=${state.error} />
      <button class="main" disabled=${state.busy}>${state.busy ? 'Asking...' : 'Sign in'}</button></form>
    ${session && html`<p><small>Server version ${session.version}</small></p>`}</main>`;
}

function App() {
  const session = useSession();
  const [address, setAddress] = useState(readAddress());
  const [error, setError] = useState(null);
  const main = useRef(null);
  useEffect(() => {
    const listener = () => {
      setAddress((before) => {
        const next = readAddress();
        if (before.path.join('/') !== next.path.join('/') && main.current) main.current.focus();
        return next;
      });
    };
    addEventListener('hashchange', listener);
    return () => removeEventListener('hashchange', listener);
  }, []);
  useEffect(() => {
    let timer = 0;
    const attempt = async () => {
      try {
        await signIn('');
        setError(null);
      } catch (problem) {
        setError(problem);
        timer = setTimeout(attempt, 2000);
      }
    };
    attempt();
    return () => clearTimeout(timer);
  }, []);
  const shown = session && session.caller !== undefined ? kPages.filter((page) => !page.shown || page.shown()) : kPages;
  const here = shown.find((page) => page.path === address.path[0]) || { path: address.path[0], name: 'No such page', page: NoPage };
  useEffect(() => { document.title = `${(here.page !== NoPage && address.path[1]) || here.name} - KVStore`; });
  if (!session) return error ? html`<main class="panel sign-in"><h1>KVStore</h1><${Problem} error=${error} /></main>` : html`<p class="loading">Loading...</p>`;
  if (session.caller === undefined) return html`<${SignIn} session=${session} />`;
  return html`<a class="skip" href="#main" onClick=${(event) => { event.preventDefault(); main.current.focus(); }}>To the content</a>
    <header class="top"><a class="name" href="#/">KVStore</a>
      <nav aria-label="Pages of the console">${shown.map((page) => html`<a href=${`#/${page.path}`}
        aria-current=${page === here ? 'page' : undefined}>${page.name}</a>`)}</nav>
      <span class="faint">${session.caller || 'everybody'} · ${session.version}</span>
      ${session.caller && html`<button type="button" onClick=${signOut}>Sign out</button>`}</header>
    <main id="main" tabindex="-1" ref=${main}><${here.page} key=${here.path} path=${address.path} query=${address.query} /></main>`;
}

const root = document.getElementById('app');
root.textContent = '';
render(html`<${App} />`, root);
