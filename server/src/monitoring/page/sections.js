// Draws the sections of the page from samples.

const STAGES = ["queue", "featurize", "parse", "encode", "head", "rank"];
const STATES = {
  discovered: "", validating: "busy", warming: "busy", serving: "good", retained: "", rejected: "bad", unloaded: "",
};
const lastSeen = new Map();
const callsChart = new Chart("calls-chart", [["answered", "blue"], ["failed", "red"]], number);
const timeChart = new Chart("time-chart", [["median", "blue"], ["99 %", "violet"]], seconds);
const charted = { calls: [], times: [] };

function drawCharts(now) {
  if (samples.length > 1) {
    const last = samples[samples.length - 2], elapsed = (now.time - last.time) / 1000;
    const { OK: answered = 0, ...failed } = grown(now.byCode, last.byCode);
    charted.calls.push({ time: now.time, values: [answered / elapsed, total(failed) / elapsed] });
    const window = growth(rankings(now), rankings(before(10000)));
    charted.times.push({ time: now.time, values: [quantile(window, 0.5), quantile(window, 0.99)] });
    for (const points of Object.values(charted)) points.splice(0, points.length - KEPT);
  }
  callsChart.draw(charted.calls);
  timeChart.draw(charted.times);
}

/** Returns the growth of some histograms over the last minute, or since the start if nothing was counted in it. */
function recent(now, pick) {
  const old = samples.length > 1 ? pick(before(WINDOW)) : null, by = {};
  for (const [key, histogram] of Object.entries(pick(now))) by[key] = growth(histogram, old && old[key]);
  const counted = old && Object.values(by).some((histogram) => histogram.count > 0);
  return counted ? [by, "Of the last minute"] : [pick(now), "Since the start"];
}

function drawTiles(now, gauge) {
  const old = before(WINDOW), elapsed = (now.time - old.time) / 1000, lately = before(10000);
  const { OK: answered = 0, ...failures } = grown(now.byCode, old.byCode);
  const [methods, note] = recent(now, (sample) => ({ rankings: rankings(sample) }));
  const failed = total(failures), all = answered + failed;
  const sinceLately = (now.time - lately.time) / 1000;
  const perSecond = sinceLately > 0 ? total(grown(now.byCode, lately.byCode)) / sinceLately : null;
  show("rate", number(perSecond));
  show("rate-note", `${number(total(now.byCode))} since the start`);
  show("failed", all > 0 && elapsed > 0 ? percent(failed, all) : "–");
  for (const [id, share] of [["p50", 0.5], ["p99", 0.99]]) {
    show(id, seconds(quantile(methods.rankings, share)));
    byId(id).nextElementSibling.textContent = note.startsWith("Of") ? "last minute" : "since the start";
  }
  // The counter has whole seconds, so a short time says nothing.
  const first = samples[0], watched = (now.time - first.time) / 1000;
  const [cpu, over] = watched >= 60 ? [now.cpu - first.cpu, watched] : [now.cpu, now.time / 1000 - gauge("process_start_time_seconds")];
  show("cpu", digits(Math.max(0, cpu) / over));
  show("cpu-note", `cores, for ${gauge("hlorank_compute_threads")} workers`);
  show("memory", bytes(gauge("process_resident_memory_bytes")));
}

function drawModels(now, old, elapsed) {
  const stable = sums(now.metrics, "hlorank_model_stable_version", "model");
  const canary = sums(now.metrics, "hlorank_model_canary_version", "model");
  const models = [...new Set((now.metrics.get("hlorank_model_versions") || []).map(({ labels }) => labels.model))].sort();
  const calls = grown(now.byModel, old.byModel), configs = grown(now.configs, old.configs);
  show("models", ...models.map((model) => {
    const states = sums(now.metrics, "hlorank_model_versions", "state", (labels) => labels.model === model);
    const pills = Object.keys(STATES).filter((state) => states[state]).map((state) => {
      const count = states[state] > 1 ? ` ${states[state]}` : "";
      return element("span", { class: `pill ${STATES[state]}` }, state + count);
    });
    const serves = stable[model] ? `version ${stable[model]}` : "no version serves";
    const also = canary[model] ? `, canary ${canary[model]}` : "";
    const rate = (by) => elapsed > 0 ? number((by[model] || 0) / elapsed) : "–";
    const numbers = `${rate(calls)} calls/s · ${rate(configs)} configurations/s`;
    return element("div", { class: "model" }, element("b", {}, model), element("span", {}, serves + also), ...pills,
      element("span", { class: "numbers" }, numbers));
  }));
}

function drawMethods(now) {
  const [methods, note] = recent(now, (sample) => sample.methods);
  show("methods-note", `${note}, streams with the time that clients take`);
  const called = Object.entries(methods).filter(([, { count }]) => count > 0).sort(([, a], [, b]) => b.count - a.count);
  const rows = called.map(([method, histogram]) => row(method, number(histogram.count),
    seconds(quantile(histogram, 0.5)), element("td", { class: "optional" }, seconds(quantile(histogram, 0.9))),
    seconds(quantile(histogram, 0.99))));
  const heads = ["method", "calls", "50 %", element("th", { scope: "col", class: "optional" }, "90 %"), "99 %"];
  show("methods", rows.length ? table(heads, rows) : element("p", { class: "soft" }, "No calls yet"));
}

function drawStages(now) {
  const [stages, note] = recent(now, (sample) => sample.stages);
  show("stages-note", `${note}; the bar is the share of the time of all calls`);
  const spent = STAGES.reduce((sum, stage) => sum + (stages[stage] ? stages[stage].sum : 0), 0);
  const rows = STAGES.map((stage) => {
    const histogram = stages[stage] || { buckets: {}, count: 0, sum: 0 };
    const share = spent > 0 ? histogram.sum / spent : 0;
    const track = element("div", { class: "track", role: "img", "aria-label": `${stage} ${percent(histogram.sum, spent)}` },
      element("i", { color: "blue", share }));
    return row(stage, element("td", { class: "bar" }, track), percent(histogram.sum, spent),
      seconds(quantile(histogram, 0.5)), seconds(quantile(histogram, 0.99)));
  });
  show("stages", table(["stage", "", "share", "50 %", "99 %"], rows));
}

function drawSharing(now, old) {
  const lately = grown(now.rows, old.rows), isLate = samples.length > 1 && lately.all > 0;
  const rows = isLate ? lately : now.rows;
  const pick = (name) => isLate ? grown(now[name], old[name]) : now[name];
  show("sharing-note", isLate ? "Of the last minute" : "Since the start");
  const shared = Math.max(0, rows.all - rows.cached - rows.evaluated), of = (part) => rows.all > 0 ? part / rows.all : 0;
  const parts = [["teal", shared, "shared in a batch"], ["violet", rows.cached, "shared with other calls"], ["blue", rows.evaluated, "evaluated"]];
  const key = element("div", { class: "key" }, ...parts.map(([color, part, name]) =>
    element("span", {}, element("i", { color }), `${name} ${percent(part, rows.all)}`)));
  const cache = (name, hits, used, most) => meter(name, `${percent(hits.hit || 0, total(hits))} found · ${bytes(used)} of ${bytes(most)}`,
    [["blue", most > 0 ? used / most : 0]]);
  // A graph that both indexes have is held once.
  const max = (name, cache) => Math.max(0, ...(now.metrics.get(name) || []).filter(({ labels }) => labels.cache.startsWith(cache)).map(({ value }) => value));
  show("sharing",
    meter("Rows", rows.evaluated > 0 ? `${number(rows.all)}, one evaluated for ${number(rows.all / rows.evaluated)}` : number(rows.all),
      parts.map(([color, part]) => [color, of(part)])), key,
    cache("Embedding cache", pick("embeddings"), max("hlorank_cache_bytes", "embeddings"), max("hlorank_cache_max_bytes", "embeddings")),
    cache("Graph cache", pick("graphs"), max("hlorank_cache_bytes", "graphs_"), max("hlorank_cache_max_bytes", "graphs_")));
}

function drawQueue(gauge) {
  const limit = (name, used, most, format) => {
    const share = most > 0 ? used / most : 0;
    return meter(name, `${format(used)} of ${format(most)}`, [[share > 0.9 ? "red" : share > 0.7 ? "amber" : "blue", share]]);
  };
  show("queue",
    limit("Requests in flight", gauge("hlorank_requests_in_progress"), gauge("hlorank_max_requests"), number),
    limit("Queued work, in nodes", gauge("hlorank_queued_nodes"), gauge("hlorank_max_queued_nodes"), number),
    limit("Memory of calls", gauge("hlorank_call_bytes"), gauge("hlorank_max_call_bytes"), bytes),
    element("p", { class: "note" }, `${number(gauge("hlorank_waiting_rows"))} rows wait or are evaluated, `
      + `${number(gauge("hlorank_compute_queue_tasks"))} tasks wait for a compute thread`));
}

function drawRefusals(now) {
  const oldest = samples[0], lately = grown(now.errors, oldest.errors);
  const last = samples.length > 1 ? samples[samples.length - 2].errors : now.errors;
  for (const [reason, count] of Object.entries(now.errors)) if (count !== (last[reason] || 0)) lastSeen.set(reason, now.time);
  const watched = duration((now.time - oldest.time) / 1000);
  show("refusals-note", `By the reason in the error, which docs/errors.md explains; recent ones are of the last ${watched}, the total is since the start`);
  const reasons = Object.keys(now.errors).sort((a, b) =>
    (lately[b] || 0) - (lately[a] || 0) || now.errors[b] - now.errors[a] || a.localeCompare(b));
  // A long reason may break after an underscore.
  const broken = (reason) => reason.split("_").flatMap((word, index) => index ? ["_", document.createElement("wbr"), word] : [word]);
  const rows = reasons.map((reason) => row(element("td", { class: "reason" }, ...broken(reason)), number(lately[reason]),
    number(now.errors[reason]), lastSeen.has(reason) ? duration((now.time - lastSeen.get(reason)) / 1000) + " ago" : "earlier"));
  show("refusals", rows.length ? table(["reason", "recent", "total", "last"], rows) : element("p", { class: "soft" }, "None since the start"));
}
