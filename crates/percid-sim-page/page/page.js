'use strict';
// The form, the results, and the fragment of the address that keeps both: whoever opens it gets the same run.
const at = (id) => document.getElementById(id);
const { machines, workloads, policies } = JSON.parse(at('catalogue').textContent);
const form = at('form');
// The published benchmark on eight CPUs of one cache.
const FIRST = {
  machine: 'epyc-9654', workload: 'intermittent', seeds: 1, seed: 1, policies: policies.map(({ name }) => name),
  set: { l3s: 1, cores_per_l3: 8, threads_per_core: 1 },
};
let worker = null;
let results = '';

const element = (name, properties = {}, ...children) => {
  const made = Object.assign(document.createElement(name), properties);
  made.append(...children);
  return made;
};
const entry = (list, name) => list.find((one) => one.name === name);
const number = (value, digits) => value.toLocaleString('en', { maximumFractionDigits: digits });
const figure = (value) => (value === null ? '-' : number(value, value >= 100 ? 0 : value >= 10 ? 1 : 2));

function showChoices() {
  for (const [field, list] of [[form.machine, machines], [form.workload, workloads]]) {
    field.append(...list.map(({ name }) => element('option', { value: name, textContent: name })));
  }
  at('policies').append(...policies.map(({ name, about }) => {
    const box = element('input', { type: 'checkbox', name: 'policy', value: name });
    return element('label', {}, box, ` ${name} `, element('small', { textContent: about }));
  }));
}

function describe() {
  const machine = entry(machines, form.machine.value);
  at('machine-about').textContent = `${machine.about}, ${machine.cpus} CPUs`;
  at('workload-about').textContent = entry(workloads, form.workload.value).about;
}

function showParameters(set = {}) {
  const { parameters } = entry(workloads, form.workload.value);
  at('parameters').replaceChildren(...Object.entries(parameters).map(([name, value]) => {
    const properties = { type: 'number', step: 'any', required: true, name: `set.${name}`, value: set[name] ?? value };
    return element('label', { className: 'number' }, name, element('input', properties));
  }));
}

// What differs from the defaults, as the command names it.
function request() {
  const { parameters } = entry(workloads, form.workload.value);
  const set = Object.entries(parameters)
    .map(([name, value]) => [name, form[`set.${name}`].valueAsNumber, value])
    .filter(([, value, otherwise]) => value !== otherwise)
    .map(([name, value]) => [name, value]);
  const chosen = [...form.querySelectorAll('[name=policy]:checked')].map(({ value }) => value);
  return {
    machine: form.machine.value, workload: form.workload.value, policies: chosen, set: Object.fromEntries(set),
    seeds: form.seeds.valueAsNumber, seed: form.seed.valueAsNumber,
  };
}

function fill(wanted) {
  for (const name of ['machine', 'workload', 'seeds', 'seed']) form[name].value = wanted[name];
  if (!form.machine.value || !form.workload.value) throw new Error('this address names a machine or workload that is not here');
  for (const box of form.querySelectorAll('[name=policy]')) box.checked = wanted.policies.includes(box.value);
  showParameters(wanted.set);
  describe();
}

function toFragment({ set, policies: chosen, ...rest }) {
  const parts = { ...rest, policies: chosen.join(','), ...Object.fromEntries(Object.entries(set).map(([name, value]) => [`set.${name}`, value])) };
  return new URLSearchParams(parts).toString();
}

function fromFragment(text) {
  const wanted = { ...FIRST, set: {} };
  for (const [name, value] of new URLSearchParams(text)) {
    if (name.startsWith('set.')) wanted.set[name.slice(4)] = Number(value);
    else if (name === 'policies') wanted.policies = value.split(',');
    else if (name in wanted) wanted[name] = value;
  }
  return wanted;
}

function command({ machine, workload, policies: chosen, set, seeds, seed }) {
  const all = chosen.length === policies.length ? 'all' : chosen.join(',');
  const settings = Object.entries(set).map(([name, value]) => ` --set ${name}=${value}`).join('');
  return `percid sim run --machine ${machine} --workload ${workload} --policy ${all}${settings} --seeds ${seeds} --seed ${seed}`;
}

function say(text, isError = false) {
  at('verdict').textContent = text;
  at('verdict').classList.toggle('error', isError);
}

function verdict(rows) {
  const timed = rows.filter((row) => row.ns_per_burst !== null).sort((one, other) => one.ns_per_burst - other.ns_per_burst);
  if (!timed.length) return 'No burst was simulated.';
  const [least, most] = [timed[0], timed[timed.length - 1]];
  const told = `${least.policy} takes ${figure(least.ns_per_burst)} ns per burst`;
  if (timed.length === 1) return `${told}.`;
  const times = number(most.ns_per_burst / least.ns_per_burst, 2);
  return `${told}, ${most.policy} ${figure(most.ns_per_burst)} ns: ${times} times as long.`;
}

function show(text) {
  results = text;
  const { rows } = JSON.parse(text);
  const longest = Math.max(...rows.map((row) => row.ns_per_burst ?? 0), 1e-9);
  at('table').tBodies[0].replaceChildren(...rows.map((row) => {
    const bar = element('div');
    bar.style.width = `${(100 * (row.ns_per_burst ?? 0)) / longest}%`;
    const counts = [row.ids_distinct, row.memory / 1000, row.work.steals, row.work.slow_paths, row.scheduling.migrations];
    return element('tr', {},
      element('th', { scope: 'row', textContent: row.policy }),
      element('td', { textContent: figure(row.ns_per_burst) }),
      element('td', { className: 'bar' }, bar),
      ...counts.map((count) => element('td', { textContent: number(count, 0) })));
  }));
  at('document').textContent = text;
  say(verdict(rows));
  at('results').hidden = false;
}

function end() {
  worker?.terminate();
  worker = null;
  at('run').disabled = false;
  at('stop').hidden = true;
  at('progress').hidden = true;
}

function bytes() {
  return Uint8Array.from(atob(at('module').textContent), (letter) => letter.charCodeAt(0));
}

function run() {
  end();
  const wanted = request();
  if (!wanted.policies.length) return say('Expected at least one policy.', true);
  history.replaceState(null, '', `#${toFragment(wanted)}`);
  at('command').textContent = command(wanted);
  results = '';
  say('Simulating …');
  at('run').disabled = true;
  at('stop').hidden = false;
  at('progress').hidden = false;
  at('progress').value = 0;
  worker = new Worker(URL.createObjectURL(new Blob([at('worker').textContent], { type: 'text/javascript' })));
  let expected = 1;
  worker.onerror = ({ message }) => { end(); say(`The simulation failed: ${message}`, true); };
  worker.onmessage = ({ data }) => {
    if (data.events !== undefined) expected = data.events;
    if (data.done !== undefined) at('progress').value = data.done / expected;
    if (data.text !== undefined) show(data.text);
    if (data.error !== undefined) { end(); say(data.error, true); }
    if (data.over) { end(); document.body.dataset.over = ''; }
  };
  worker.postMessage({ module: bytes(), request: wanted });
}

showChoices();
form.workload.addEventListener('change', () => { showParameters(); describe(); });
form.machine.addEventListener('change', describe);
form.addEventListener('submit', (event) => { event.preventDefault(); run(); });
at('stop').addEventListener('click', () => {
  end();
  say(results ? `Stopped. ${verdict(JSON.parse(results).rows)}` : 'Stopped before a policy was done.');
});
at('save').addEventListener('click', () => {
  at('save').href = URL.createObjectURL(new Blob([`${results}\n`], { type: 'application/json' }));
});
function open() {
  const fragment = location.hash.slice(1);
  try {
    fill(fragment ? fromFragment(fragment) : FIRST);
    if (fragment) run();
  } catch (error) {
    fill(FIRST);
    say(`Cannot open this address: ${error.message}`, true);
  }
}
window.addEventListener('hashchange', open);
open();
