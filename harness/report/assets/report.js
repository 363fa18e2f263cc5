(() => {
  "use strict";
  const data = JSON.parse(document.getElementById("data").textContent);
  const byId = (id) => document.getElementById(id);
  const color = (name) => getComputedStyle(document.documentElement).getPropertyValue("--" + name).trim();
  const FONT = '12px system-ui, -apple-system, "Segoe UI", Roboto, "Noto Sans", sans-serif';
  const PRINT_WIDTH = 680;
  let printing = false;
  const charts = [];

  const width = (node) => (printing ? PRINT_WIDTH : Math.max(240, Math.floor(node.clientWidth)));
  const grouped = (value, digits) =>
    value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
  const figure = (value) => grouped(value, Math.abs(value) >= 10000 ? 0 : 1).replace("-", "−");
  const axisTime = (value) => {
    if (value === 0) return "0";
    const size = Math.abs(value);
    return (value < 0 ? "−" : "") + (size >= 1000 ? +(size / 1000).toFixed(3) + " s" : +size.toFixed(2) + " ms");
  };
  const element = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };
  const axis = (extra) => ({
    stroke: color("quiet"), font: FONT, grid: { stroke: color("rule"), width: 1 },
    ticks: { stroke: color("rule"), width: 1, size: 4 }, ...extra,
  });

  /* ---- one turn, or one conversation --------------------------------------------------------------------------------------------- */

  const SIDE = { speech_start: "user", speech_end: "user", speech_sent: "user", committed: "user",
    endpoint: "endpoint", first_text: "text", first_packet: "agent", first_audible: "gap", last_packet: "agent", done: "quiet",
    response_started: "agent", response_done: "quiet", interrupted: "gap", peer_error: "bad" };
  const sideOf = (name) => SIDE[name] || (/ (begins|ends)$/.test(name) ? "user" : "quiet");
  const ROWS = [["event"], ["fto_ms"], ["stop_ms"], ["first_audible_ms"], ["endpoint_ms", "think_ms", "leading_silence_ms"], ["first_packet_ms"], ["ttft_ms"]];
  const BAR = { event: "user", fto_ms: "gap", stop_ms: "silence", first_audible_ms: "gap", endpoint_ms: "endpoint", think_ms: "think", leading_silence_ms: "silence",
    first_packet_ms: "agent", ttft_ms: "text" };
  const ZERO = { speech_end: "after the end of the user's speech", speech_sent: "after the query was sent", session_start: "after the beginning of the conversation" };
  const MOST_FLAGS = 14;
  let view, detail, overview, sound, playhead;
  let shown = [0, 1]; // ms on the axis; uPlot takes a new range over a moment later
  let cursor = null; // ms on the axis
  let focus = null; // what "the gap" is in a conversation: the event that was asked for

  function lanes() {
    const rows = ROWS.filter((names) => view.spans.some((span) => names.includes(span.metric)));
    const parts = [["user", 84], ["agent", 84], ["packets", 34], ["texts", 34], ...rows.map((names, i) => ["row" + i, i ? 23 : 30])];
    const height = parts.reduce((sum, part) => sum + part[1], 0) + 6;
    const found = { height, rows };
    let top = 0;
    for (const [name, size] of parts) { found[name] = { top, size }; top += size; }
    return found;
  }

  function waves(lane, height) {
    const x = view.user[0].map((_, i) => view.from_ms + (i + 0.5) * view.step_ms);
    const place = (side, at) => {
      const all = [...view[side][0], ...view[side][1]].filter((v) => v !== null).map(Math.abs);
      const top = Math.max(3, ...(all.length ? [all.reduce((a, b) => Math.max(a, b), 0)] : []));
      const middle = 1 - (at.top + at.size / 2) / height, reach = (at.size / 2 - 6) / height / top;
      return view[side].map((values) => values.map((v) => (v === null ? null : middle + v * reach)));
    };
    const [ulo, uhi] = place("user", lane.user), [alo, ahi] = place("agent", lane.agent);
    return [x, uhi, ulo, ahi, alo];
  }

  function waveOptions(size, height, extra) {
    const line = (name) => ({ stroke: color(name), width: 1, points: { show: false }, spanGaps: false });
    return {
      width: size, height, legend: { show: false }, ms: 1,
      scales: { x: { time: false, ...(extra.range ? { range: extra.range } : {}) }, y: { range: [0, 1] } },
      series: [{}, line("user"), line("user"), line("agent"), line("agent")],
      bands: [{ series: [1, 2], fill: color("user") }, { series: [3, 4], fill: color("agent") }],
      ...extra.options,
    };
  }

  const anchorAt = (name) => { const found = view.anchors.find((a) => a[0] === name); return found ? found[1] : null; };
  const gap = () => {
    if (view.kind === "conversation") return focus;
    const from = anchorAt(view.zero), to = anchorAt("first_audible") ?? anchorAt("first_packet") ?? anchorAt("first_text");
    return from !== null && to !== null ? [from, to] : null;
  };
  function gapWindow() {
    const found = gap();
    if (!found) return [view.from_ms, view.to_ms];
    const [from, to] = [Math.min(...found), Math.max(...found)];
    const margin = Math.max(view.kind === "conversation" ? 2000 : 350, (to - from) * 0.55);
    return [Math.max(view.from_ms, from - margin), Math.min(view.to_ms, to + margin)];
  }

  function band(u) {
    const found = gap();
    if (!found) return;
    const [a, b] = found.map((v) => u.valToPos(v, "x", true));
    u.ctx.fillStyle = color("gap-soft");
    u.ctx.fillRect(a, u.bbox.top, b - a, u.bbox.height);
  }

  function drawDetail(u, lane) {
    const { ctx, bbox } = u, ratio = uPlot.pxRatio;
    const X = (v) => u.valToPos(v, "x", true), Y = (px) => bbox.top + px * ratio;
    ctx.save();
    ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
    ctx.font = FONT.replace("12px", 12 * ratio + "px"); ctx.textBaseline = "middle"; ctx.lineWidth = ratio;
    for (const [from, to] of view.stalls) {
      const at = lane.agent;
      ctx.globalAlpha = 0.16; ctx.fillStyle = color("bad");
      ctx.fillRect(X(from), Y(at.top + 4), X(to) - X(from), (at.size - 8) * ratio);
      ctx.globalAlpha = 1;
      const text = ["stall " + figure(to - from) + " ms", figure(to - from)].find((t) => ctx.measureText(t).width + 4 * ratio < X(to) - X(from));
      if (text) {
        ctx.textAlign = "center"; ctx.fillText(text, (X(from) + X(to)) / 2, Y(at.top + at.size / 2));
      }
    }
    const ticks = (values, at, name) => {
      ctx.strokeStyle = color(name); ctx.globalAlpha = 0.75; ctx.beginPath();
      for (const v of values) { const x = Math.round(X(v)) + 0.5; ctx.moveTo(x, Y(at.top + 15)); ctx.lineTo(x, Y(at.top + at.size - 5)); }
      ctx.stroke(); ctx.globalAlpha = 1;
    };
    ticks(view.packets, lane.packets, "agent");
    ticks(view.texts.map((t) => t[0]), lane.texts, "text");
    ticks(view.late_packets, lane.packets, "bad");
    if (view.late_sends.length) ticks(view.late_sends, { top: lane.user.size - 26, size: 24 }, "bad");
    for (const [name, v] of view.anchors) {
      ctx.strokeStyle = color(sideOf(name)); ctx.setLineDash([4 * ratio, 3 * ratio]);
      ctx.beginPath(); ctx.moveTo(X(v), Y(0)); ctx.lineTo(X(v), Y(lane.row0 ? lane.row0.top : lane.height)); ctx.stroke();
    }
    ctx.setLineDash([]);
    lane.rows.forEach((names, i) => {
      const at = lane["row" + i], spans = view.spans.filter((span) => names.includes(span.metric));
      for (const span of spans) {
        const a = X(span.from), b = X(span.to), top = Y(at.top + (i ? 2 : 8)), size = 18 * ratio;
        ctx.fillStyle = color(BAR[span.metric]); ctx.fillRect(Math.min(a, b), top, Math.max(Math.abs(b - a) - (i === 1 ? ratio : 0), ratio), size);
        ctx.font = (i ? "" : "600 ") + FONT.replace("12px", 12 * ratio + "px");
        const value = span.value === null ? "" : figure(span.value) + " ms", pad = 6 * ratio;
        const shown = value ? [span.label + " " + value, value] : [span.label, span.label.split(" ")[0]];
        const l = Math.max(Math.min(a, b), bbox.left), r = Math.min(Math.max(a, b), bbox.left + bbox.width);
        const next = Math.min(...spans.map((other) => Math.min(other.from, other.to)).filter((at) => at > Math.min(span.from, span.to)));
        const room = Math.min(bbox.left + bbox.width, next < Infinity ? X(next) - pad : Infinity) - r, fits = (text) => ctx.measureText(text).width + 2 * pad < r - l;
        const inside = r > l && (names.length > 1 || room < ctx.measureText(shown[0]).width + pad ? shown.find(fits) : fits(shown[0]) && shown[0]);
        ctx.textAlign = "left";
        if (inside) { ctx.fillStyle = color("on-bar"); ctx.fillText(inside, l + pad, top + size / 2 + ratio); }
        else if (r >= bbox.left && l <= bbox.left + bbox.width && (names.length === 1 || span === spans[spans.length - 1])) {
          ctx.fillStyle = color("ink");
          const text = shown.find((t) => ctx.measureText(t).width + pad < room);
          if (text) ctx.fillText(text, r + pad, top + size / 2 + ratio);
        }
      }
    });
    ctx.font = FONT.replace("12px", 11.5 * ratio + "px"); ctx.textAlign = "left"; ctx.fillStyle = color("quiet");
    const names = [["user", "User"], ["agent", "Agent, as heard"], ["packets", "Audio packets: " + view.packets.length + (view.late_packets.length ? ", late: " + view.late_packets.length : "")], ["texts", "Text deltas: " + view.texts.length]];
    for (const [name, text] of names) {
      const y = Y(lane[name].top + 8), x = bbox.left + 4 * ratio;
      ctx.globalAlpha = 0.8; ctx.fillStyle = color("paper"); ctx.fillRect(x - 2 * ratio, y - 7 * ratio, ctx.measureText(text).width + 4 * ratio, 14 * ratio);
      ctx.globalAlpha = 1; ctx.fillStyle = color("quiet"); ctx.fillText(text, x, y);
    }
    ctx.restore();
  }

  /* Labels above the plot, so that none covers another or another's line. Labels left of a split run to the right of
     their line, the others to its left; among the former earlier ones stand higher, among the latter later ones do. */
  const SPARE = ["speech_sent", "done", "last_packet", "speech_start", "first_text", "endpoint", "committed", "first_packet"];

  function levels(flags, split, least, most) {
    const found = flags.map(() => 0), n = flags.length;
    for (let i = split - 1; i >= 0; i--) {
      if (flags[i].x + flags[i].size > most) return null;
      for (let j = i + 1; j < split; j++) if (flags[j].x < flags[i].x + flags[i].size) found[i] = Math.max(found[i], found[j] + 1);
    }
    for (let j = split; j < n; j++) {
      const from = flags[j].x - flags[j].size;
      if (from < least) return null;
      for (let i = 0; i < j; i++) {
        if (i >= split ? flags[i].x > from : flags[i].x + flags[i].size > from) {
          if (i < split && flags[i].x + flags[i].size > flags[j].x) return null;
          found[j] = Math.max(found[j], found[i] + 1);
        }
      }
    }
    return found;
  }

  function placeFlags(u) {
    const box = byId("flags"), offset = u.bbox.left / uPlot.pxRatio, full = u.bbox.width / uPlot.pxRatio;
    box.replaceChildren();
    let flags = view.anchors.map(([name, v]) => ({ name, v, x: u.valToPos(v, "x") })).filter((f) => f.x >= -1 && f.x <= full + 1);
    if (flags.length > MOST_FLAGS) flags = [];
    for (const flag of flags) {
      flag.node = element("div", undefined, "flag");
      const text = element("span", flag.name.replaceAll("_", " ") + " ");
      text.append(element("b", figure(flag.v)));
      flag.node.append(text); flag.node.style.color = color(sideOf(flag.name));
      box.append(flag.node);
      flag.size = flag.node.offsetWidth + 6;
    }
    flags.sort((a, b) => a.x - b.x);
    let best = null, split = 0;
    for (const spare of [null, ...SPARE]) {
      if (spare) { for (const f of flags) if (f.name === spare) f.node.remove(); flags = flags.filter((f) => f.name !== spare); }
      for (let k = flags.length; k >= 0; k--) {
        const found = levels(flags, k, -offset, full + 12);
        if (found && (!best || Math.max(...found) < Math.max(...best))) { best = found; split = k; }
      }
      if (best) break;
    }
    if (!best) { for (const f of flags) f.node.remove(); flags = []; best = []; }
    flags.forEach((flag, i) => {
      const left = i >= split;
      if (left) flag.node.classList.add("left");
      flag.node.style[left ? "right" : "left"] = (left ? box.clientWidth - offset - flag.x : offset + flag.x) + "px";
      flag.node.style.height = (best[i] + 1) * 16 + 4 + "px";
    });
    const height = (Math.max(0, ...best) + 1) * 16 + 6;
    box.style.height = Math.max(height, parseFloat(box.style.height) || 0) + "px";
  }

  function drawTimeline(range) {
    detail?.destroy(); overview?.destroy();
    const lane = lanes(), size = width(byId("detail"));
    byId("flags").style.height = "";
    overview = new uPlot(waveOptions(width(byId("overview")) - 2, 58, {
      options: {
        padding: [3, 0, 3, 0], axes: [{ show: false }, { show: false }],
        cursor: { y: false, drag: { x: true, setScale: false }, points: { show: false } },
        hooks: {
          drawClear: [band],
          draw: [(u) => {
            if (!detail) return;
            const [min, max] = shown, ratio = uPlot.pxRatio, a = u.valToPos(min, "x", true), b = u.valToPos(max, "x", true);
            u.ctx.strokeStyle = color("quiet"); u.ctx.lineWidth = 1.5 * ratio;
            u.ctx.strokeRect(a + ratio, u.bbox.top - ratio, b - a - 2 * ratio, u.bbox.height + 2 * ratio);
          }],
          setSelect: [(u) => { if (u.select.width > 4) zoom(u.posToVal(u.select.left, "x"), u.posToVal(u.select.left + u.select.width, "x")); u.setSelect({ width: 0 }, false); }],
          ready: [(u) => u.over.addEventListener("click", (event) => {
            const at = u.posToVal(event.offsetX, "x"), half = (shown[1] - shown[0]) / 2;
            if (Math.abs(at) >= 0) pan(at - half);
          })],
        },
      },
    }), waves({ user: { top: 0, size: 29 }, agent: { top: 29, size: 29 } }, 58), byId("overview"));
    detail = new uPlot(waveOptions(size, lane.height + 48, {
      range: (u, min, max) => [Math.max(min, view.from_ms), Math.min(max, view.to_ms)],
      options: {
        padding: [0, 26, 0, 26],
        axes: [axis({ values: (u, ticks) => ticks.map(axisTime), label: ZERO[view.zero], labelFont: FONT, labelSize: 18, size: 28, space: 70 }), { show: false }],
        cursor: { y: false, points: { show: false }, drag: { x: true, setScale: true } },
        hooks: {
          drawClear: [band],
          setScale: [(u, key) => { if (key === "x" && u.scales.x.min !== null) shown = [u.scales.x.min, u.scales.x.max]; }],
          draw: [(u) => drawDetail(u, lane), placeFlags, () => { overview.redraw(false); placeCursor(); }],
          ready: [(u) => u.over.addEventListener("click", (event) => seek(u.posToVal(event.offsetX, "x")))],
        },
      },
    }), waves(lane, lane.height), byId("plot"));
    zoom(...range);
    playhead = element("div", undefined, "playhead"); detail.over.append(playhead);
    placeCursor();
  }

  function zoom(from, to) {
    const least = 8;
    if (to - from < least) { const middle = (from + to) / 2; from = middle - least / 2; to = middle + least / 2; }
    shown = [Math.max(view.from_ms, from), Math.min(view.to_ms, to)];
    detail.setScale("x", { min: shown[0], max: shown[1] });
  }
  function pan(from) {
    const size = shown[1] - shown[0];
    from = Math.min(Math.max(from, view.from_ms), view.to_ms - size);
    zoom(from, from + size);
  }
  function scaled(factor) {
    const [min, max] = shown, middle = (min + max) / 2, half = ((max - min) / 2) * factor;
    zoom(middle - half, middle + half);
  }
  const actions = { gap: () => zoom(...gapWindow()), all: () => zoom(view.from_ms, view.to_ms), in: () => scaled(0.6), out: () => scaled(1 / 0.6) };

  function placeCursor() {
    if (!playhead) return;
    const [min, max] = shown;
    playhead.hidden = cursor === null || cursor < min || cursor > max;
    if (!playhead.hidden) playhead.style.left = detail.valToPos(cursor, "x") - 1 + "px";
  }
  function moveCursor(at) {
    cursor = at;
    placeCursor();
    byId("cursor").textContent = at === null ? "" : "cursor " + figure(at) + " ms";
  }
  function seek(at) {
    at = Math.min(Math.max(at, view.from_ms), view.to_ms);
    if (sound) sound.currentTime = Math.max(0, (at - view.from_ms) / 1000);
    moveCursor(at);
  }
  /* To an instant, which comes into sight where it was not; the page scrolls where the chart was not. */
  function jump(at) {
    const [min, max] = shown;
    if (at < min || at > max) pan(at - (max - min) / 2);
    seek(at);
    byId("detail").scrollIntoView({ block: "nearest" });
  }
  function step(way) {
    const instants = view.anchors.map((anchor) => anchor[1]).sort((a, b) => a - b), from = cursor ?? (way > 0 ? -Infinity : Infinity);
    const next = way > 0 ? instants.find((at) => at > from) : instants.findLast((at) => at < from);
    if (next !== undefined) jump(next);
  }
  function follow() {
    if (!sound || sound.paused) return;
    moveCursor(view.from_ms + sound.currentTime * 1000);
    requestAnimationFrame(follow);
  }
  function followSeek() { if (sound && sound.paused && sound.currentTime > 0) moveCursor(view.from_ms + sound.currentTime * 1000); }

  function player(label, source) {
    const node = element("audio");
    node.controls = true; node.preload = "metadata"; node.src = source;
    node.setAttribute("aria-label", label);
    return node;
  }

  /* A view beyond the first few stands in a page of its own, which hands it over from a hidden frame. */
  function openView(index, then) {
    byId("view-choice").value = String(index);
    const entry = data.views[index];
    if (!entry.file) { showView(index); if (then) then(); return; }
    const frame = element("iframe"), end = () => { removeEventListener("message", take); clearTimeout(late); frame.remove(); };
    const take = (event) => {
      if (event.source !== frame.contentWindow) return;
      end();
      data.views[index] = event.data;
      if (byId("view-choice").value === String(index)) { showView(index); if (then) then(); }
    };
    const late = setTimeout(() => {
      end();
      byId("view-about").textContent = entry.session + ": " + entry.file + " cannot be loaded. It belongs beside this page; firstpacket report draws it again.";
    }, 5000);
    frame.className = "loader"; frame.title = "data of " + entry.session; frame.tabIndex = -1; frame.setAttribute("aria-hidden", "true");
    frame.sandbox = "allow-scripts"; frame.src = entry.file;
    addEventListener("message", take);
    document.body.append(frame);
  }

  function showView(index) {
    view = data.views[index];
    const first = view.spans.find((span) => span.metric === "event");
    focus = first ? [first.from, first.to] : null;
    const box = byId("sound");
    box.replaceChildren(); sound = null; moveCursor(null);
    if (view.sound) {
      sound = player("This " + view.kind + " as heard", view.sound);
      sound.addEventListener("play", follow);
      for (const name of ["seeked", "pause"]) sound.addEventListener(name, followSeek);
      box.append(sound, element("span", "left: user, right: agent"));
    }
    for (const [side, path] of Object.entries(view.files)) {
      if (view.sound) { const link = element("a"); link.href = path; link.textContent = side + " recording"; box.append(link); }
      else box.append(element("span", side), player(side + " recording", path));
    }
    if (!box.childNodes.length) box.append(element("span", "No sound beside this page."));
    byId("view-about").textContent = [view.session, view.mode, view.language, view.status && "status " + view.status, ...view.notes].filter(Boolean).join(" · ");
    const error = byId("view-error");
    error.hidden = !view.error; error.textContent = view.error;
    const words = byId("words");
    words.replaceChildren();
    for (const [name, text] of [[view.kind === "turn" ? "Asked" : "Clips", view.asked], ["Understood", view.understood], ["Answer", view.answer]]) {
      if (text) words.append(element("dt", name), element("dd", text));
    }
    const body = document.querySelector("#instants tbody");
    body.replaceChildren(...view.anchors.map(([name, v, meaning]) => {
      const row = element("tr");
      const head = element("th"), button = element("button", name, "jump"); button.type = "button"; head.scope = "row"; head.append(button);
      row.dataset.at = v;
      row.append(head, element("td", grouped(v, 3).replace("-", "−"), "n"), element("td", meaning));
      return row;
    }));
    const found = gap(), audible = view.spans.find((span) => span.metric === "first_audible_ms");
    byId("detail").setAttribute("aria-label", "Timeline of one " + view.kind + ", " + (view.why || view.session) + ". "
      + (audible ? "First audible sound " + figure(audible.value) + " milliseconds after the end of speech." : found || view.kind === "conversation" ? "" : "No answer was heard."));
    drawTimeline(view.whole ? [view.from_ms, view.to_ms] : gapWindow());
  }

  /* To the drawing, the keyboard with it. */
  function toTimeline() {
    byId("timeline").scrollIntoView();
    byId("detail").focus({ preventScroll: true });
  }

  /* ---- distributions ---------------------------------------------------------------------------------------- */

  const LOOK = [["gap", []], ["agent", [7, 4]], ["text", [2, 3]]];

  function drawEcdf() {
    const box = byId("ecdf");
    const sorted = data.charts.map((chart) => chart.values.filter((v) => v !== null).sort((a, b) => a - b));
    const x = [...new Set([0, ...sorted.flat()])].sort((a, b) => a - b);
    const shares = sorted.map((values) => { let i = 0; return x.map((v) => { while (i < values.length && values[i] <= v) i++; return (i / values.length) * 100; }); });
    const steps = uPlot.paths.stepped({ align: 1 });
    return new uPlot({
      width: width(box) / (printing ? 2 : 1) - (printing ? 10 : 0), height: printing ? 220 : 300, ms: 1, padding: [8, 12, 0, 0],
      scales: { x: { time: false }, y: { range: [0, 101] } },
      legend: { live: true, markers: { width: 0, fill: (u, i) => (i ? color(LOOK[i - 1][0]) : "transparent") } },
      cursor: { y: false, points: { size: 6 }, drag: { x: true } },
      axes: [axis({ values: (u, ticks) => ticks.map(axisTime), size: 30, space: 60 }), axis({ values: (u, ticks) => ticks.map((v) => v + " %"), size: 48, splits: () => [0, 25, 50, 75, 95] })],
      series: [{ label: "within", value: (u, v) => (v === null ? "" : axisTime(+v.toFixed(1))) },
        ...data.charts.map((chart, i) => ({
          label: chart.label, stroke: color(LOOK[i][0]), dash: LOOK[i][1], width: 2, paths: steps, points: { show: false },
          value: (u, v) => (v === null ? "" : v.toFixed(1) + " %"),
        }))],
    }, [x, ...shares], box);
  }

  function drawDots() {
    const box = byId("dots"), chart = data.charts[+byId("dots-choice").selectedIndex || 0], turns = data.turns;
    const order = turns.query.map((_, i) => i).filter((i) => chart.values[i] !== null).sort((a, b) => chart.values[a] - chart.values[b]);
    const rows = data.queries.length, tall = Math.min(Math.max(rows * Math.min(60, Math.max(17, 12 + 3 * Math.sqrt(turns.query.length / rows))), 120), 560), step = tall / rows, labelled = step >= 12;
    const failed = turns.query.map((_, i) => i).filter((i) => turns.failed[i] && chart.values[i] === null);
    const values = order.map((i) => chart.values[i]), most = values.length ? values[values.length - 1] : 1000;
    const spread = Math.max(most - (values[0] ?? 0), most * 0.05), all = [(values[0] ?? 0) - spread * 0.04, most + spread * (failed.length ? 0.16 : 0.04)];
    const jitter = (i) => (((i * 7919) % 101) / 101 - 0.5) * (step > 8 ? 0.5 : 0.2);
    const Yof = (i) => rows - 1 - turns.query[i] + (rows < turns.query.length ? jitter(i) : 0);
    const room = labelled ? Math.min(130, 14 + 6.3 * Math.max(...data.queries.map((q) => Math.min(q.length, 18)))) : 10;
    let near = -1;
    return new uPlot({
      width: width(box) / (printing ? 2 : 1) - (printing ? 10 : 0), height: tall + 40, ms: 1, legend: { show: false }, padding: [6, 14, 0, 0],
      scales: { x: { time: false, range: (u, a, b) => (a === b || (a <= (values[0] ?? 0) && b >= most) ? all : [a, b]) }, y: { range: [-0.7, rows - 0.3] } },
      cursor: { points: { show: false }, y: false, drag: { x: true } },
      axes: [axis({ values: (u, ticks) => ticks.map(axisTime), size: 30, space: 60 }),
        axis({ size: room, grid: { show: labelled, stroke: color("rule"), width: 1 }, ticks: { show: false },
          splits: () => (labelled ? data.queries.map((_, i) => rows - 1 - i) : []), values: (u, ticks) => ticks.map((v) => { const q = data.queries[rows - 1 - v] || ""; return q.length > 18 ? q.slice(0, 17) + "…" : q; }) })],
      series: [{}, { paths: () => null, points: { show: false } }],
      hooks: {
        draw: [(u) => {
          const { ctx, bbox } = u, ratio = uPlot.pxRatio;
          ctx.save(); ctx.beginPath(); ctx.rect(bbox.left, bbox.top, bbox.width, bbox.height); ctx.clip();
          for (const i of order) {
            const x = u.valToPos(chart.values[i], "x", true), y = u.valToPos(Yof(i), "y", true);
            ctx.beginPath(); ctx.arc(x, y, (i === near ? 6 : 3.6) * ratio, 0, 7);
            ctx.globalAlpha = i === near ? 1 : turns.query.length > 400 ? 0.35 : 0.75;
            ctx.fillStyle = ctx.strokeStyle = color("agent"); ctx.lineWidth = 1.3 * ratio;
            if (turns.tainted[i]) ctx.stroke(); else ctx.fill();
          }
          ctx.globalAlpha = 1;
          if (chart.p50 !== null) {
            const x = u.valToPos(chart.p50, "x", true);
            ctx.strokeStyle = color("gap"); ctx.lineWidth = ratio; ctx.setLineDash([4 * ratio, 3 * ratio]);
            ctx.beginPath(); ctx.moveTo(x, bbox.top); ctx.lineTo(x, bbox.top + bbox.height); ctx.stroke(); ctx.setLineDash([]);
          }
          const lost = new Map();
          for (const i of failed) lost.set(turns.query[i], (lost.get(turns.query[i]) || 0) + 1);
          ctx.fillStyle = color("bad"); ctx.font = FONT.replace("12px", 12 * ratio + "px"); ctx.textAlign = "right"; ctx.textBaseline = "middle";
          if (step >= 9) for (const [query, count] of lost) ctx.fillText(count + " ×", bbox.left + bbox.width - 3 * ratio, u.valToPos(rows - 1 - query, "y", true));
          ctx.restore();
        }],
        setCursor: [(u) => {
          const { left, top } = u.cursor;
          let best = -1, distance = 15;
          if (left >= 0) for (const i of order) {
            const d = Math.hypot(u.valToPos(chart.values[i], "x") - left, u.valToPos(Yof(i), "y") - top);
            if (d < distance) { distance = d; best = i; }
          }
          if (best !== near) { near = best; about(chart, near); u.redraw(false); }
        }],
        ready: [(u) => u.over.addEventListener("click", () => {
          const at = near < 0 ? -1 : data.views.findIndex((v) => v.session === turns.session[near] && v.kind === "turn");
          if (at >= 0) openView(at, toTimeline);
        })],
      },
    }, order.length ? [order.map((i) => chart.values[i]), order.map(Yof)] : [all, [null, null]], box);
  }

  function about(chart, i) {
    const turns = data.turns;
    byId("dots-about").textContent = i >= 0
      ? [data.queries[turns.query[i]], chart.label + " " + figure(chart.values[i]) + " ms", turns.session[i], turns.tainted[i] ? "tainted" : ""].filter(Boolean).join(" · ")
      : "Dashed: median. Hollow: tainted by the harness. ×: turns without a proper answer.";
  }

  /* ---- the page --------------------------------------------------------------------------------------------- */

  /* A table that is wider than the page says so above itself; a keyboard reaches and moves it. */
  function hintAtScrolling() {
    for (const box of document.querySelectorAll(".scroll")) {
      const wide = box.scrollWidth > box.clientWidth + 1;
      box.previousElementSibling.hidden = !wide;
      if (wide) box.tabIndex = 0; else box.removeAttribute("tabindex");
    }
  }
  for (const part of document.querySelectorAll("details")) part.addEventListener("toggle", hintAtScrolling);
  hintAtScrolling();

  function drawAll() {
    hintAtScrolling();
    if (view) drawTimeline(shown);
    drawCharts();
  }
  function drawCharts() {
    for (const chart of charts.splice(0)) chart.destroy();
    if (byId("ecdf")) { charts.push(drawEcdf(), drawDots()); about(data.charts[0], -1); }
  }
  function setPrinting(on) {
    if (printing === on) return;
    printing = on;
    document.documentElement.classList.toggle("printing", on);
    drawAll();
  }

  if (data.views.length) {
    showView(0);
    byId("view-choice").addEventListener("change", (event) => openView(+event.target.value));
    document.querySelector("main").addEventListener("click", (event) => {
      if (event.target.closest("a")) return;
      const line = event.target.closest("[data-view], [data-at]");
      if (!line) return;
      if (line.dataset.at) { jump(+line.dataset.at); return; }
      openView(+line.dataset.view, () => {
        if (line.dataset.from) {
          focus = [+line.dataset.from, line.dataset.to ? +line.dataset.to : +line.dataset.from];
          actions.gap();
          jump(focus[0]);
        }
        toTimeline();
      });
    });
    for (const button of document.querySelectorAll("[data-zoom]")) button.addEventListener("click", () => actions[button.dataset.zoom]());
    byId("detail").addEventListener("keydown", (event) => {
      if (event.ctrlKey || event.metaKey || event.altKey) return;
      const size = shown[1] - shown[0];
      const keys = {
        ArrowLeft: () => pan(shown[0] - size / 8), ArrowRight: () => pan(shown[0] + size / 8),
        Home: () => pan(view.from_ms), End: () => pan(view.to_ms - size),
        n: () => step(1), N: () => step(1), p: () => step(-1), P: () => step(-1),
        "+": actions.in, "=": actions.in, "-": actions.out, 0: actions.all, g: actions.gap, G: actions.gap,
        " ": () => { if (sound) { if (sound.paused) sound.play(); else sound.pause(); } },
      };
      if (keys[event.key]) { event.preventDefault(); keys[event.key](); }
    });
  }
  if (byId("dots-choice")) byId("dots-choice").addEventListener("change", drawCharts);
  drawCharts();
  let resizing, last = innerWidth;
  addEventListener("resize", () => { if (innerWidth === last || printing) return; last = innerWidth; clearTimeout(resizing); resizing = setTimeout(drawAll, 120); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", drawAll);
  matchMedia("print").addEventListener("change", (event) => setPrinting(event.matches));
  addEventListener("beforeprint", () => setPrinting(true));
  addEventListener("afterprint", () => setPrinting(false));
})();
