// Reads /metrics, keeps samples of five minutes, and computes rates and quantiles of them.
"use strict";
const POLL = 2000, TIMEOUT = 10000, KEPT = 150, WINDOW = 60000;
const RANKINGS = ["RankConfigs", "SuggestConfigs"];
const samples = [];

/** Returns the series that are not zero, by name. */
function parse(text) {
  const found = new Map();
  for (const line of text.split("\n")) {
    const match = /^([a-zA-Z_]\w*)(?:\{(.*)\})? (\S+)$/.exec(line);
    if (!match || match[3] === "0") continue;
    const labels = {};
    for (const [, key, value] of (match[2] || "").matchAll(/(\w+)="((?:[^"\\]|\\.)*)"/g)) labels[key] = value;
    if (!found.has(match[1])) found.set(match[1], []);
    found.get(match[1]).push({ labels, value: Number(match[3]) });
  }
  return found;
}

/** Returns the sums of a metric by the values of a label. */
function sums(metrics, name, label, filter = () => true) {
  const by = {};
  for (const { labels, value } of metrics.get(name) || []) {
    if (filter(labels)) by[labels[label]] = (by[labels[label]] || 0) + value;
  }
  return by;
}

/** Returns the buckets and sums of a histogram by the values of a label. */
function histograms(metrics, name, label) {
  const by = {};
  const of = (labels) => (by[labels[label]] ||= { buckets: {}, sum: 0, count: 0 });
  for (const { labels, value } of metrics.get(name + "_bucket") || []) {
    const buckets = of(labels).buckets;
    buckets[labels.le] = (buckets[labels.le] || 0) + value;
  }
  for (const { labels, value } of metrics.get(name + "_sum") || []) of(labels).sum += value;
  for (const { labels, value } of metrics.get(name + "_count") || []) of(labels).count += value;
  return by;
}

const total = (by) => Object.values(by).reduce((sum, value) => sum + value, 0);

/** Returns what is kept of the metrics for rates. Gauges are in `metrics` of the last sample only. */
function sampled(metrics) {
  const value = (name) => total(sums(metrics, name, ""));
  return {
    time: Date.now(), metrics,
    byCode: sums(metrics, "hlorank_requests_total", "code"),
    byModel: sums(metrics, "hlorank_requests_total", "model"),
    configs: sums(metrics, "hlorank_configs_total", "model"),
    rows: {
      all: value("hlorank_segment_rows_total"), cached: value("hlorank_rows_cached_total"),
      evaluated: value("hlorank_rows_evaluated_total"),
    },
    embeddings: sums(metrics, "hlorank_cache_requests_total", "result", ({ cache }) => cache === "embeddings"),
    graphs: sums(metrics, "hlorank_cache_requests_total", "result", ({ cache }) => cache.startsWith("graphs_")),
    errors: sums(metrics, "hlorank_errors_total", "reason"),
    methods: histograms(metrics, "hlorank_request_duration_seconds", "method"),
    stages: histograms(metrics, "hlorank_stage_duration_seconds", "stage"),
    cpu: value("process_cpu_seconds_total"),
  };
}

/** Returns by how much each number grew. A counter that fell began again. */
function grown(now, before) {
  const by = {};
  for (const [key, value] of Object.entries(now)) {
    const old = (before && before[key]) || 0;
    by[key] = value >= old ? value - old : value;
  }
  return by;
}

/** Returns the growth of a histogram, or of several together. */
function growth(now, before) {
  return {
    buckets: grown(now.buckets, before && before.buckets),
    count: grown({ count: now.count }, before).count, sum: grown({ sum: now.sum }, before).sum,
  };
}

function together(histograms) {
  const all = { buckets: {}, count: 0, sum: 0 };
  for (const one of histograms.filter(Boolean)) {
    for (const [le, count] of Object.entries(one.buckets)) all.buckets[le] = (all.buckets[le] || 0) + count;
    all.count += one.count;
    all.sum += one.sum;
  }
  return all;
}

/** Returns a quantile in seconds, as Prometheus estimates it; null if nothing was counted. */
function quantile(histogram, share) {
  const bounds = Object.keys(histogram.buckets).map((le) => [le === "+Inf" ? Infinity : Number(le), histogram.buckets[le]]);
  bounds.sort((a, b) => a[0] - b[0]);
  const count = bounds.length ? bounds[bounds.length - 1][1] : 0;
  let low = 0, below = 0;
  for (const [bound, cumulative] of bounds) {
    if (count > 0 && cumulative >= share * count && cumulative > below) {
      if (bound === Infinity) return low;
      return low + (bound - low) * (share * count - below) / (cumulative - below);
    }
    [low, below] = [bound, cumulative];
  }
  return null;
}

const rankings = (sample) => together(RANKINGS.map((method) => sample.methods[method]));

/** Returns the last sample that is at least this old, or the oldest. */
function before(age) {
  const last = samples[samples.length - 1];
  const old = samples.filter((sample) => sample.time <= last.time - age);
  return old.length ? old[old.length - 1] : samples[0];
}

function number(value) {
  if (value === null || Number.isNaN(value)) return "–";
  for (const [size, unit] of [[1e9, " G"], [1e6, " M"], [1e4, " k"]]) {
    if (value >= size) return digits(value / (unit === " k" ? 1e3 : size)) + unit;
  }
  return digits(value);
}
const digits = (value) => value === 0 ? "0" : value.toFixed(value >= 100 || Number.isInteger(value) ? 0 : value >= 10 ? 1 : 2);
function seconds(value) {
  if (value === null) return "–";
  if (value < 1e-3) return digits(value * 1e6) + " µs";
  return value < 1 ? digits(value * 1e3) + " ms" : digits(value) + " s";
}
function bytes(value) {
  const units = ["B", "KiB", "MiB", "GiB", "TiB"];
  let unit = 0;
  while (value >= 1024 && unit < units.length - 1) [value, unit] = [value / 1024, unit + 1];
  return digits(value) + " " + units[unit];
}
const percent = (part, whole) => whole > 0 ? digits(100 * part / whole) + " %" : "–";
function duration(value) {
  if (value < 90) return Math.round(value) + " s";
  if (value < 5400) return Math.round(value / 60) + " min";
  return value < 172800 ? Math.round(value / 3600) + " h" : Math.round(value / 86400) + " days";
}
