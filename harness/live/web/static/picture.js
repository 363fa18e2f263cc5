/* The last seconds of both sides on one axis, with the instants measured. Drawn by uPlot. */
"use strict";

class Picture { // eslint-disable-line no-unused-vars
  static SPAN_MS = 12000;
  static HEIGHT = 220;
  static FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';

  constructor(node) {
    this.node = node;
    this.clear();
    new ResizeObserver(() => this.plot && this.plot.setSize(this.size())).observe(node);
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.build());
  }

  clear() {
    this.user = [];
    this.agent = [];
    this.turns = [];
    this.marks = [];
    this.now = 0;
    this.build();
  }

  /** look: what the server told. */
  take(look) {
    const from = look.now - Picture.SPAN_MS - 2000;
    const kept = (points) => points.filter((point) => point[0] >= from);
    this.user = kept(this.user.concat(look.user.points));
    this.agent = kept(this.agent.concat(look.agent.points));
    this.marks = this.marks.concat(look.marks).filter((mark) => mark.ms >= from);
    this.turns = look.turns;
    this.now = look.now;
    this.plot.setData(this.data(), false);
    this.plot.setScale("x", this.window());
  }

  window() {
    const end = Math.max(this.now, Picture.SPAN_MS);
    return { min: end - Picture.SPAN_MS, max: end };
  }

  /** Both sides on the union of their instants; quiet sounds are lifted so that speech at any level is to be seen. */
  data() {
    const lifted = (peak) => Math.sqrt(peak);
    return uPlot.join([
      [this.user.map((point) => point[0]), this.user.map((point) => lifted(point[1]))],
      [this.agent.map((point) => point[0]), this.agent.map((point) => -lifted(point[1]))],
    ]);
  }

  size() {
    return { width: Math.max(240, Math.floor(this.node.clientWidth)), height: Picture.HEIGHT };
  }

  color(name) {
    return getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  }

  build() {
    if (this.plot) this.plot.destroy();
    const side = (name) => ({ stroke: this.color(name), fill: this.color(name), width: 1, points: { show: false }, spanGaps: true });
    const seconds = (values) => values.map((value) => (value / 1000).toFixed(0) + " s");
    const options = {
      ...this.size(), legend: { show: false }, cursor: { show: false }, padding: [26, 18, 0, 14], ms: 1,
      scales: { x: { time: false }, y: { range: [-1, 1] } },
      series: [{}, side("user"), side("agent")],
      axes: [
        { stroke: this.color("quiet"), font: Picture.FONT, grid: { stroke: this.color("rule"), width: 1 },
          ticks: { show: false }, values: (_, values) => seconds(values), incrs: [1000, 2000, 5000], space: 40, size: 26 },
        { show: false },
      ],
      hooks: { draw: [(plot) => this.annotate(plot)] },
    };
    this.plot = new uPlot(options, this.data(), this.node);
    this.plot.setScale("x", this.window());
  }

  /** Lines at the instants of each turn, the wait shaded; labels where there is room. */
  annotate(plot) {
    const { ctx, bbox } = plot, ratio = uPlot.pxRatio;
    const at = (ms) => plot.valToPos(ms, "x", true);
    const inside = (x) => x >= bbox.left && x <= bbox.left + bbox.width;
    ctx.save();
    ctx.font = Picture.FONT.replace("12px", 12 * ratio + "px");
    ctx.textBaseline = "bottom";
    ctx.lineWidth = ratio;
    const taken = [];
    const line = (ms, name, label, bold) => {
      const x = Math.round(at(ms)) + 0.5;
      if (!inside(x)) return;
      ctx.strokeStyle = this.color(name);
      ctx.lineWidth = (bold ? 2 : 1) * ratio;
      ctx.beginPath();
      ctx.moveTo(x, bbox.top);
      ctx.lineTo(x, bbox.top + bbox.height);
      ctx.stroke();
      const width = ctx.measureText(label).width;
      const left = Math.max(bbox.left, Math.min(x - width / 2, bbox.left + bbox.width - width));
      if (!label || taken.some(([a, b]) => left < b + 8 * ratio && left + width > a - 8 * ratio)) return;
      taken.push([left, left + width]);
      ctx.fillStyle = this.color("ink");
      ctx.fillText(label, left, bbox.top - 5 * ratio);
    };
    for (const turn of this.turns) {
      const audible = turn.end === null || turn.first_audible_ms === null ? null : turn.end + turn.first_audible_ms;
      if (turn.end !== null) {
        const [from, to] = [turn.end, audible ?? this.now].map((ms) => Math.min(Math.max(at(ms), bbox.left), bbox.left + bbox.width));
        if (audible !== null || turn === this.turns[this.turns.length - 1]) {
          ctx.fillStyle = this.color("gap-soft");
          ctx.fillRect(from, bbox.top, to - from, bbox.height);
        }
        if (audible !== null) line(audible, "gap", Math.round(turn.first_audible_ms) + " ms", true);
        line(turn.end, "user", "end of speech", true);
      }
      line(turn.start, "user", "");
      if (turn.sent !== null && turn.first_packet_ms !== null) line(turn.sent + turn.first_packet_ms, "agent", "");
    }
    for (const mark of this.marks) {
      if (mark.name === "interrupted") line(mark.ms, "gap", "interrupted");
      else line(mark.ms, "quiet", "");
    }
    ctx.restore();
  }
}
