// All 65,536 shards as a picture of 256 by 256, a colour for each pair of hosts.
import { html, useEffect, useRef, useState } from '../vendor/preact.js';
import { Facts } from '../ui.js';

const kSide = 256;

function colourOf(index, count) { return [Math.round((index * 360) / Math.max(1, count) + (index % 2) * 40) % 360, 62, index % 3 === 0 ? 46 : index % 3 === 1 ? 58 : 38]; }
function rgbOf([hue, saturation, light]) {
  const s = saturation / 100;
  const l = light / 100;
  const part = (n) => {
    const k = (n + hue / 30) % 12;
    return Math.round(255 * (l - s * Math.min(l, 1 - l) * Math.max(-1, Math.min(k - 3, 9 - k, 1))));
  };
  return [part(0), part(8), part(4)];
}
export function pairOf(range) { return `${range.master}, ${range.slave}`; }

/// ranges   [{range: [first, last], master, slave}]
/// trouble  The names of hosts with problems: their shards are hatched.
export function ShardPicture({ ranges, trouble, onPick }) {
  const canvas = useRef(null);
  const [at, setAt] = useState(null);
  const pairs = [...new Set(ranges.map(pairOf))].sort();
  const find = (shard) => ranges.find(({ range: [first, last] }) => shard >= first && shard <= last);
  const shape = JSON.stringify([ranges, [...trouble]]);
  useEffect(() => {
    const context = canvas.current.getContext('2d');
    const image = context.createImageData(kSide, kSide);
    const dark = matchMedia('(prefers-color-scheme: dark)').matches;
    for (let shard = 0; shard < kSide * kSide; ++shard) image.data.set(dark ? [38, 45, 56, 255] : [228, 231, 237, 255], 4 * shard);
    for (const range of ranges) {
      const colour = rgbOf(colourOf(pairs.indexOf(pairOf(range)), pairs.length));
      const bad = trouble.has(range.master) || trouble.has(range.slave);
      for (let shard = range.range[0]; shard <= Math.min(range.range[1], kSide * kSide - 1); ++shard) {
        const hatched = bad && (Math.floor(shard / kSide) + shard) % 3 === 0;
        image.data.set(hatched ? [220, 38, 38, 255] : [...colour, 255], 4 * shard);
      }
    }
    context.putImageData(image, 0, 0);
  }, [shape]);
  const shardAt = (event) => {
    const box = canvas.current.getBoundingClientRect();
    const x = Math.min(kSide - 1, Math.max(0, Math.floor((event.clientX - box.left) * kSide / box.width)));
    const y = Math.min(kSide - 1, Math.max(0, Math.floor((event.clientY - box.top) * kSide / box.height)));
    return y * kSide + x;
  };
  const keys = { ArrowRight: 1, ArrowLeft: -1, ArrowDown: kSide, ArrowUp: -kSide };
  const move = (event) => {
    if (event.key === 'Enter' && at !== null) onPick(at);
    if (!(event.key in keys)) return;
    event.preventDefault();
    setAt(Math.min(kSide * kSide - 1, Math.max(0, (at ?? 0) + keys[event.key] * (event.shiftKey ? 16 : 1))));
  };
  const range = at === null ? undefined : find(at);
  return html`<div class="picture"><canvas ref=${canvas} width=${kSide} height=${kSide} tabindex="0" role="application"
      aria-label="All shards, 256 in a line. Arrow keys go from shard to shard, with Shift 16 at a time; the text beside the picture says what is there. The table below has the same."
      onMouseMove=${(event) => setAt(shardAt(event))} onClick=${(event) => { setAt(shardAt(event)); onPick(shardAt(event)); }} onKeyDown=${move}></canvas>
    <div><div aria-live="polite">${at === null ? html`<p class="faint">Point at a shard.</p>` : html`<${Facts} facts=${[['shard', at],
      ['range', range ? `${range.range[0]} to ${range.range[1]}` : 'not open'], ['master', range && range.master], ['slave', range && range.slave]]} />`}</div>
      <div class="legend">${pairs.slice(0, 40).map((pair, index) => {
        const [hue, saturation, light] = colourOf(index, pairs.length);
        return html`<span key=${pair}><i style=${{ background: `hsl(${hue} ${saturation}% ${light}%)` }}></i>${pair}</span>`;
      })}${pairs.length > 40 && html`<span class="faint">and ${pairs.length - 40} more pairs</span>`}</div></div></div>`;
}
