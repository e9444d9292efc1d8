// Draws the searches of /searches.

function drawSearches(searches) {
  show("searches", ...(searches.length ? searches.map(search)
    : [element("p", { class: "soft" }, "No measurements were reported")]));
}

function search({ target, graph, name, instance, configs, failed, fastest_seconds, fastest, curve, times, important, workers, decision, seconds_since_report }) {
  const title = [name || `graph ${graph.slice(0, 8)}`, instance].filter(Boolean).join(" · ");
  const failures = failed ? `, ${number(failed)} failed` : "";
  const counts = `${number(configs)} measured${failures} · ${duration(seconds_since_report)} ago`;
  return element("div", { class: "search" },
    element("div", { class: "wide" }, element("b", {}, title), " ", element("span", { class: "soft" }, `on ${target}`)),
    element("div", { class: "tile" }, element("span", { class: "soft" }, "Fastest"),
      element("b", {}, fastest_seconds === null ? "–" : seconds(fastest_seconds)), parameters(fastest)),
    element("div", {}, ...progress(curve, times, configs), element("div", { class: "axis" }, counts)),
    element("div", {}, ...(important.length ? [element("span", { class: "soft" }, "What matters")] : []),
      ...important.map(([parameter, share]) => meter(parameter, percent(share, 1), [["violet", share]]))),
    ...(workers.length ? [measuring(workers)] : []),
    ...(decision ? [decided(decision)] : []));
}

const WORKERS = 8;
const pill = (color, text, title = "") => element("span", { class: `pill ${color}`, title }, text);
const parameters = (pairs) => element("div", { class: "soft" }, ...pairs.flatMap(([name, value]) =>
  [element("span", { class: "word" }, `${name} = ${typeof value === "number" ? digits(value) : value}`), " "]));

function measuring(workers) {
  const shown = workers.slice(0, WORKERS).map(({ name, machine, configs }) =>
    pill("busy", `${machine || name}${configs > 1 ? ` × ${configs}` : ""}`, `${name} measures ${configs}`));
  const more = workers.length > WORKERS ? [pill("", `${workers.length - WORKERS} more`)] : [];
  return element("div", { class: "wide" }, element("span", { class: "soft" }, "Measuring now "), ...shown, ...more);
}

function decided({ value, seconds: time, runs, measured_configs, machine }) {
  const evidence = [time > 0 ? seconds(time) : "", runs > 0 ? `mean of ${number(runs)} runs` : "",
    measured_configs > 0 ? `best of ${number(measured_configs)}` : "", machine ? `on ${machine}` : ""].filter(Boolean).join(", ");
  return element("div", { class: "wide" }, pill("good", "Decided"), pairsOf(value), " ", element("span", { class: "soft" }, evidence));
}

/** Returns a decision that is a flat JSON object as pairs, and any other one as it is. */
function pairsOf(value) {
  try {
    const pairs = Object.entries(JSON.parse(value)).map(([name, each]) => `${name} = ${JSON.stringify(each)}`);
    return pairs.length ? pairs.join(" · ") : value;
  } catch { return value; }
}

/** Draws times, and the fastest one until then, over the number of configurations. The scale of times is logarithmic. */
function progress(curve, times, configs) {
  if (!curve.length) return [element("div", { class: "soft" }, "No configuration has a time yet")];
  const all = [...curve, ...times].map(([, time]) => time);
  const most = Math.max(...all), least = curve[curve.length - 1][1];
  const x = (count) => (300 * count / configs).toFixed(1);
  const y = (time) => (most > least ? 6 + 88 * Math.log(most / time) / Math.log(most / least) : 94).toFixed(1);
  const dots = times.map(([count, time]) => `M${x(count)},${y(time)}l0.01,0`).join("");
  const corners = curve.slice(1).map(([count, time]) => `H${x(count)}V${y(time)}`).join("");
  const told = `The fastest time fell from ${seconds(curve[0][1])} to ${seconds(least)}`;
  const line = drawn("path", { d: `M${x(curve[0][0])},${y(curve[0][1])}${corners}H300`, stroke: "var(--blue)", "stroke-width": 2, ...PEN });
  const svg = drawn("svg", { ...FRAME, "aria-label": told }, drawn("path", { d: dots, stroke: "var(--dot)", "stroke-width": 5, ...PEN }), line);
  const scale = element("div", { class: "scale" }, element("span", {}, seconds(most)), element("span", {}, seconds(least)));
  return [element("div", { class: "plot" }, scale, element("div", { class: "chart" }, svg))];
}
