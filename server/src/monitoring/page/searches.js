// Draws the searches of /searches.

function drawSearches(searches) {
  show("searches", ...(searches.length ? searches.map(search)
    : [element("p", { class: "soft" }, "No measurements were reported")]));
}

function search({ target, graph, name, instance, configs, failed, fastest_seconds, fastest, curve, important, workers, decision, seconds_since_report }) {
  const title = element("b", {}, [name || `graph ${graph.slice(0, 8)}`, instance].filter(Boolean).join(" · "));
  const failures = failed ? `, ${number(failed)} failed` : "";
  const counts = `${number(configs)} configurations${failures} · ${duration(seconds_since_report)} ago`;
  const parameters = fastest.map(([parameter, value]) => `${parameter}=${digits(value)}`).join(" ");
  return element("div", { class: "search" },
    element("div", {}, title, element("div", { class: "soft" }, target), element("div", { class: "soft" }, counts),
      ...workers.slice(0, WORKERS).map(worker), ...(workers.length > WORKERS ? [pill("", `${workers.length - WORKERS} more workers`)] : []),
      ...(decision ? [decided(decision)] : [])),
    element("div", { class: "tile" }, element("span", { class: "soft" }, "Fastest"),
      element("b", {}, fastest_seconds === null ? "–" : seconds(fastest_seconds)), element("span", { class: "soft" }, parameters)),
    steps(curve, configs),
    element("div", {}, ...important.map(([parameter, share]) => meter(parameter, percent(share, 1), [["violet", share]]))));
}

const WORKERS = 8;
const pill = (color, text) => element("span", { class: `pill ${color}` }, text);

function worker({ name, machine, configs }) {
  return pill("busy", `${name}${machine && machine !== name ? ` on ${machine}` : ""} measures ${configs}`);
}

function decided({ value, seconds: time, runs, measured_configs, machine }) {
  const evidence = [time > 0 ? seconds(time) : "", runs > 0 ? `${number(runs)} runs` : "",
    measured_configs > 0 ? `of ${number(measured_configs)} measured` : "", machine ? `on ${machine}` : ""].filter(Boolean).join(", ");
  return element("div", {}, pill("good", "decided"), ` ${value} `, element("span", { class: "soft" }, evidence));
}

/** Draws the fastest time over the number of configurations: its logarithm, from the first time above to the last one below. */
function steps(curve, configs) {
  if (!curve.length) return element("div", { class: "soft" }, "No configuration has a time yet");
  const first = curve[0][1], last = curve[curve.length - 1][1];
  const x = (count) => (300 * count / configs).toFixed(1);
  const y = (time) => (first > last ? 4 + 92 * Math.log(first / time) / Math.log(first / last) : 96).toFixed(1);
  const corners = curve.slice(1).map(([count, time]) => `H${x(count)}V${y(time)}`);
  const path = drawn("path", { d: `M${x(curve[0][0])},${y(first)}${corners.join("")}H300`, stroke: "var(--blue)", "stroke-width": 2, ...PEN });
  const told = `The fastest time fell from ${seconds(first)} to ${seconds(last)}`;
  return element("div", {}, element("div", { class: "chart" }, drawn("svg", { ...FRAME, "aria-label": told }, path)),
    element("div", { class: "axis" }, element("span", {}, seconds(first)), element("span", {}, seconds(last))));
}
