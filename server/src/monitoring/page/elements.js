// Elements of the page, and charts. Names from the server are only ever text, never markup.

const byId = (id) => document.getElementById(id);
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) {
    if (key === "color") made.style.background = `var(--${value})`;
    else if (key === "share") made.style.width = `${Math.min(100, 100 * value)}%`;
    else made.setAttribute(key, value);
  }
  made.append(...children);
  return made;
}
/** Makes an element of a drawing. */
function drawn(name, attributes, ...children) {
  const made = document.createElementNS("http://www.w3.org/2000/svg", name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}
const FRAME = { viewBox: "0 0 300 100", preserveAspectRatio: "none", role: "img" };
const PEN = { fill: "none", "vector-effect": "non-scaling-stroke", "stroke-linejoin": "round", "stroke-linecap": "round" };
const show = (id, ...children) => byId(id).replaceChildren(...children);

function table(heads, rows) {
  const head = element("tr", {}, ...heads.map((text) => text instanceof Node ? text : element("th", { scope: "col" }, text)));
  return element("table", {}, element("thead", {}, head), element("tbody", {}, ...rows));
}
const row = (...cells) => element("tr", {}, ...cells.map((cell) => cell instanceof Node ? cell : element("td", {}, cell)));

function meter(name, text, parts) {
  const track = element("div", { class: "track", role: "img", "aria-label": `${name}: ${text}` },
    ...parts.filter(([, share]) => share > 0).map(([color, share]) => element("i", { color, share })));
  return element("div", { class: "meter" }, element("div", {}, element("span", {}, name), element("span", {}, text)), track);
}

/** Draws lines over up to five minutes. Pointing at the chart shows the values at that time. */
class Chart {
  constructor(id, series, format) {
    Object.assign(this, { series, format, pointed: null });
    this.legend = element("div", { class: "legend" });
    this.top = element("span", { class: "top" });
    this.box = element("div", { class: "chart" }, this.top);
    this.svg = drawn("svg", FRAME);
    this.box.append(this.svg);
    this.left = element("span");
    show(id, this.legend, this.box, element("div", { class: "axis" }, this.left, element("span", {}, "now")));
    this.box.addEventListener("pointermove", (event) => {
      const box = this.box.getBoundingClientRect();
      this.pointed = (event.clientX - box.left) / box.width;
      this.draw();
    });
    this.box.addEventListener("pointerleave", () => { this.pointed = null; this.draw(); });
  }

  line(points, color, width) {
    return drawn("path", { d: points, stroke: `var(--${color})`, "stroke-width": width, ...PEN });
  }

  draw(points = this.points || []) {
    this.points = points;
    const values = points.flatMap((point) => point.values).filter((value) => value !== null);
    const most = Math.max(...values, 0) || 1, now = points.length ? points[points.length - 1].time : 0;
    const span = Math.max(WINDOW, points.length ? now - points[0].time : 0);
    const x = (time) => 300 * (1 - (now - time) / span), y = (value) => 96 - 80 * value / most;
    const lines = this.series.map(([, color], index) => {
      let text = "", pen = "M";
      for (const { time, values } of points) {
        if (values[index] === null) { pen = "M"; continue; }
        text += `${pen}${x(time).toFixed(1)},${y(values[index]).toFixed(1)}`;
        // A value without neighbours is a dot.
        if (pen === "M") text += "l0.01,0";
        pen = "L";
      }
      return this.line(text, color, 2);
    });
    let shown = points[points.length - 1];
    this.svg.replaceChildren(this.line("M0,96L300,96", "line", 1), this.line("M0,16L300,16", "line", 1), ...lines);
    if (this.pointed !== null && points.length) {
      const wanted = now - span * (1 - this.pointed);
      shown = points.reduce((best, point) => Math.abs(point.time - wanted) < Math.abs(best.time - wanted) ? point : best);
      this.svg.append(this.line(`M${x(shown.time)},4L${x(shown.time)},96`, "soft", 1));
    }
    this.top.textContent = values.length ? this.format(most) : "";
    const past = shown && shown.time !== now ? `${Math.round((now - shown.time) / 1000)} s ago` : "";
    this.legend.replaceChildren(...this.series.map(([name, color], index) => {
      const value = shown ? this.format(shown.values[index]) : "–";
      return element("span", {}, element("i", { color }), `${name} ${value}`);
    }), element("span", { class: "soft" }, past));
    this.svg.setAttribute("aria-label", this.legend.textContent);
    this.left.textContent = `${duration(span / 1000)} ago`;
  }
}
