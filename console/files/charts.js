// Plots by uPlot, which index.html loads, each with its numbers as a table for those who do not see it.
import { html, useEffect, useRef, useState } from './vendor/preact.js';
import { short, time } from './format.js';

const kColours = 8;
function styleOf(name) { return getComputedStyle(document.documentElement).getPropertyValue(name).trim(); }
export function colourOf(index) { return styleOf(`--s${(index % kColours) + 1}`); }

const kDark = matchMedia('(prefers-color-scheme: dark)');
/// Draws the caller again when the colours change.
function useColours() {
  const [dark, setDark] = useState(kDark.matches);
  useEffect(() => {
    const listener = () => setDark(kDark.matches);
    kDark.addEventListener('change', listener);
    return () => kDark.removeEventListener('change', listener);
  }, []);
  return dark;
}

/// Adds each series to those before it, for areas that stand on each other.
function stacked(series) {
  let sums = [];
  return series.map(({ values }) => {
    sums = values.map((value, index) => (sums[index] || 0) + (value || 0));
    return sums;
  });
}

/// times   Milliseconds since 1970, ascending.
/// series  [{label, values, texts}]: a value, or null, for each time; their digits, where values may have lost some.
/// kind    lines, stacked, bars
/// zone    Of the times along the chart.
export function Chart({ title, times, series, kind = 'lines', unit = '', height = 220, zone = 'UTC' }) {
  const place = useRef(null);
  const dark = useColours();
  const shape = `${kind} ${dark} ${zone} ${series.map((one) => one.label).join('\u0000')}`;
  const drawn = useRef(null);
  // Areas hide what is behind them, so the highest is drawn first.
  const data = () => {
    const values = kind === 'stacked' ? stacked(series).reverse() : series.map((one) => one.values);
    return [times.map((ms) => ms / 1000), ...values];
  };
  useEffect(() => {
    const text = styleOf('--faint');
    const grid = { stroke: styleOf('--line'), width: 1 };
    const order = series.map((one, index) => index);
    if (kind === 'stacked') order.reverse();
    const plot = new uPlot({
      width: place.current.clientWidth || 300,
      height,
      legend: { show: false },
      cursor: { drag: { x: false, y: false } },
      tzDate: (seconds) => uPlot.tzDate(new Date(seconds * 1000), zone === 'UTC' ? 'Etc/UTC' : zone),
      scales: { x: { range: (self, low, high) => (low === high ? [low - 60, high + 60] : [low, high]) }, y: { range: (self, low, high) => [Math.min(0, low ?? 0), high > 0 ? high * 1.05 : 1] } },
      axes: [{ stroke: text, grid, ticks: grid }, { stroke: text, grid, ticks: grid, size: 60, values: (self, ticks) => ticks.map(short) }],
      series: [{}, ...order.map((index) => ({
        label: series[index].label,
        stroke: colourOf(index),
        width: 1.5,
        fill: kind === 'lines' ? undefined : `${colourOf(index)}${kind === 'stacked' ? '' : '99'}`,
        points: { show: times.length < 60 && kind === 'lines', size: 5 },
        paths: kind === 'bars' ? uPlot.paths.bars({ size: [0.8, 60] }) : undefined,
      }))],
    }, data(), place.current);
    drawn.current = plot;
    const observer = new ResizeObserver(() => plot.setSize({ width: place.current.clientWidth, height }));
    observer.observe(place.current);
    return () => {
      drawn.current = null;
      observer.disconnect();
      plot.destroy();
    };
  }, [shape, height]);
  useEffect(() => { if (drawn.current) drawn.current.setData(data()); });
  const last = times.length - 1;
  return html`<figure class="figure">
    <figcaption>${title}${unit && html` <small>(${unit})</small>`}</figcaption>
    <div class="chart" ref=${place} role="img"
      aria-label=${`${title}: ${times.length} points of ${series.length} series; the numbers are in the table below`}></div>
    <div class="legend">${series.map((one, index) => html`<span key=${one.label}><i style=${{ background: colourOf(index) }}></i>${one.label}
      ${last >= 0 && html` <span class="faint">${short(one.values[last])}</span>`}</span>`)}</div>
    <${Numbers} title=${title} times=${times} series=${series} />
  </figure>`;
}

/// The numbers, once somebody opens them.
function Numbers({ title, times, series }) {
  const [open, setOpen] = useState(false);
  return html`<details onToggle=${(event) => setOpen(event.currentTarget.open)}><summary>Numbers</summary>
    ${open && html`<div class="scroll" tabindex="0" role="region" aria-label=${`Numbers of ${title}`}><table>
      <thead><tr><th scope="col">time</th>${series.map((one) => html`<th scope="col" class="number">${one.label}</th>`)}</tr></thead>
      <tbody>${times.map((ms, index) => html`<tr><td>${time(ms)}</td>${series.map((one) => html`<td class="number">${one.texts ? one.texts[index] : short(one.values[index])}</td>`)}</tr>`)}</tbody>
    </table></div>`}</details>`;
}
