// Polls the server, and draws its answers.

async function get(path) {
  const answer = await fetch(path, { cache: "no-store", signal: AbortSignal.timeout(TIMEOUT) });
  return { status: answer.status, text: await answer.text() };
}

async function poll() {
  const [metrics, ready, searches] = await Promise.all(["metrics", "readyz", "searches"].map(get));
  if (metrics.status !== 200) throw new Error(`/metrics answers ${metrics.status}`);
  const now = sampled(parse(metrics.text));
  if (samples.length) samples[samples.length - 1].metrics = null;
  samples.push(now);
  samples.splice(0, samples.length - KEPT);
  draw(now, ready);
  drawSearches(JSON.parse(searches.text));
}

function draw(now, ready) {
  const gauge = (name) => total(sums(now.metrics, name, ""));
  const old = before(WINDOW), elapsed = (now.time - old.time) / 1000;
  byId("ready").className = `pill ${ready.status === 200 ? "good" : "bad"}`;
  show("ready", ready.text.trim());
  const build = (now.metrics.get("hlorank_build_info") || [{ labels: {} }])[0].labels;
  const up = duration(now.time / 1000 - gauge("process_start_time_seconds"));
  show("about", `version ${build.version || "unknown"} · up for ${up} · ${location.host}`);
  document.title = `hlorank · ${ready.text.trim()}`;
  drawTiles(now, gauge);
  drawCharts(now);
  drawModels(now, old, elapsed);
  drawMethods(now);
  drawStages(now);
  drawSharing(now, old);
  drawQueue(gauge);
  drawRefusals(now);
}

async function run() {
  // A page that nobody looks at asks for nothing.
  if (!document.hidden) await refresh();
  setTimeout(run, samples.length === 1 ? POLL / 4 : POLL);
}

async function refresh() {
  try {
    await poll();
    byId("lost").hidden = true;
    document.body.classList.remove("stale");
  } catch (error) {
    const last = samples.length ? ` since ${new Date(samples[samples.length - 1].time).toLocaleTimeString()}` : "";
    show("lost", `The server has not answered${last}: ${error.message}. Trying again.`);
    byId("lost").hidden = false;
    document.body.classList.add("stale");
  }
}
run();
