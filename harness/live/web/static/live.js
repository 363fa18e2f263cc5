/* The page: microphone and loudspeaker over WebRTC, buttons and keys, and what the server tells of the session. */
(() => {
  "use strict";
  const byId = (id) => document.getElementById(id);
  const picture = new Picture(byId("picture"));
  const DELAY_EVERY_MS = 1000, MOST_LINES = 200;
  const CANNOT = {
    NotAllowedError: "the microphone is not allowed here: allow it in the address bar, and start again",
    NotFoundError: "this device has no microphone: plug one in, and start again",
    NotReadableError: "the microphone cannot be opened: another program may hold it",
    OverconstrainedError: "the chosen microphone is gone: choose another",
  };

  let socket = null, call = null, microphone = null, asking = false;
  let held = false; // push-to-talk: the key or button is down
  let ready = false, muted = false, pushing = false;
  let closing = false; // a session was ended here, and the server has not said yet that it is kept
  let delay = { jitter_ms: null, playout_ms: 0 }, before = null, watching = null;
  let wait = 0;
  const hello = { manual: false };
  const heardHere = new Map(); // turn -> ms on top of "first audible", as it was when the sound left
  const looks = new Map(); // turn -> how often its figure was told

  const nothing = document.querySelector("#turns .nothing");
  const send = (message) => { if (socket.readyState === WebSocket.OPEN) socket.send(JSON.stringify(message)); };
  const state = (text, on) => { byId("state").textContent = text; byId("state").classList.toggle("on", Boolean(on)); };
  const complain = (text) => { byId("error").textContent = text; byId("error").hidden = !text; };
  const element = (tag, text, className) => {
    const node = document.createElement(tag);
    if (text !== undefined) node.textContent = text;
    if (className) node.className = className;
    return node;
  };

  /* ---- the call -------------------------------------------------------------------------------------------------------- */

  async function start() {
    if (asking || call) return;
    asking = true;
    complain("");
    byId("start").disabled = true;
    state("asking for the microphone");
    try {
      const device = byId("device").value;
      const wish = { echoCancellation: byId("echo").checked, noiseSuppression: byId("noise").checked, autoGainControl: false, channelCount: 1 };
      if (device) wish.deviceId = { exact: device };
      microphone = await navigator.mediaDevices.getUserMedia({ audio: wish });
      await listDevices();
      await dial();
    } catch (error) {
      end(CANNOT[error.name] || error.message || String(error));
    } finally {
      asking = false;
    }
  }

  async function dial() {
    const [track] = microphone.getAudioTracks();
    call = new RTCPeerConnection({ iceServers: [] });
    const here = call;
    call.createDataChannel("firstpacket");
    call.addTrack(track, microphone);
    call.addEventListener("track", (event) => {
      event.receiver.jitterBufferTarget = 0;
      byId("loudspeaker").srcObject = new MediaStream([event.track]);
      byId("loudspeaker").play().catch(() => complain("the browser does not play sound by itself: press Start once more"));
    });
    call.addEventListener("connectionstatechange", () => {
      if (here === call && here.connectionState === "failed") end("the connection for sound broke off");
    });
    track.addEventListener("ended", () => { if (here === call) end("the microphone was unplugged, or taken away by the browser"); });
    await call.setLocalDescription(await call.createOffer());
    await gathered(call);
    state("connecting");
    pushing = hello.manual || byId("ptt").checked;
    send({ type: "start", sdp: call.localDescription.sdp, push_to_talk: pushing, facts: facts(track) });
  }

  /** What goes into the recording about this browser and its microphone; nothing that names a device for ever. */
  function facts(track) {
    const { echoCancellation, noiseSuppression, autoGainControl, sampleRate, latency } = track.getSettings();
    const told = { browser: navigator.userAgent, microphone: track.label, echoCancellation: String(echoCancellation),
      noiseSuppression: String(noiseSuppression), autoGainControl: String(autoGainControl), sampleRate, latency };
    return Object.fromEntries(Object.entries(told).filter(([, value]) => ["string", "number", "boolean"].includes(typeof value)));
  }

  const gathered = (connection) => new Promise((resolve) => {
    const look = () => { if (connection.iceGatheringState === "complete") resolve(); };
    connection.addEventListener("icegatheringstatechange", look);
    setTimeout(resolve, 2000);
    look();
  });

  function end(why) {
    clearInterval(watching);
    if (microphone) for (const track of microphone.getTracks()) track.stop();
    if (call) { const old = call; call = null; old.close(); send({ type: "stop" }); }
    microphone = null;
    byId("loudspeaker").srcObject = null;
    closing = closing || ready;
    ready = held = muted = pushing = false;
    before = null;
    state(why ? "ended" : "ended, and kept");
    if (why) complain(why);
    controls();
  }

  /* ---- what the browser adds ------------------------------------------------------------------------------------------- */

  async function measure() {
    if (!call) return;
    let jitter = null, playout = 0, now = null;
    for (const entry of (await call.getStats()).values()) {
      if (entry.type === "inbound-rtp" && entry.kind === "audio") {
        now = { ...before, delay: entry.jitterBufferDelay, emitted: entry.jitterBufferEmittedCount, id: entry.id };
      } else if (entry.type === "media-playout" && entry.totalSamplesCount) {
        playout = (entry.totalPlayoutDelay / entry.totalSamplesCount) * 1000;
      }
    }
    if (now && before && now.emitted > before.emitted) jitter = ((now.delay - before.delay) / (now.emitted - before.emitted)) * 1000;
    before = now;
    if (jitter === null) return;
    delay = { jitter_ms: jitter, playout_ms: playout };
    send({ type: "delay", ...delay });
    byId("delay").textContent = `what sound needs from there to this browser's loudspeaker: ${Math.round(wait)} ms at firstpacket, `
      + `${Math.round(jitter)} ms in the browser's jitter buffer, ${Math.round(playout)} ms in its playout, by its own figures`;
  }

  /* ---- what the server tells -------------------------------------------------------------------------------------------- */

  const on = {
    hello(message) {
      hello.manual = message.manual;
      byId("peer").textContent = message.peer;
      document.title = `${message.peer}: firstpacket live`;
      byId("ptt").checked = message.push_to_talk;
      state("press Start and allow the microphone");
      controls();
    },
    async answer(message) {
      if (call) await call.setRemoteDescription({ type: "answer", sdp: message.sdp });
    },
    ready() {
      ready = true;
      picture.clear();
      heardHere.clear();
      looks.clear();
      document.querySelector("#turns tbody").replaceChildren(nothing);
      byId("texts").replaceChildren();
      byId("lines").replaceChildren();
      watching = setInterval(measure, DELAY_EVERY_MS);
      measure();
      controls();
    },
    look(message) {
      wait = message.wait_ms;
      picture.take(message);
      level("user", message.user.db);
      level("agent", message.agent.db);
      turns(message.turns);
      if (message.texts) texts(message.texts);
      for (const line of message.lines) byId("lines").append(element("li", line.text, line.kind));
      while (byId("lines").children.length > MOST_LINES) byId("lines").firstElementChild.remove();
      if (message.deaf) complain(`turns are not told while you speak (${message.deaf}); the recording has them`);
      if (ready && call) {
        const talking = message.talking;
        if (pushing) state(talking ? "you are heard: let go to end your turn" : "hold to talk", talking);
        else state(message.muted ? "muted" : "you are heard", talking);
      }
    },
    ended(message) {
      const why = message.reason;
      if (call) end(why ? `the session ended: ${why}` : "");
      closing = false;
      state(`ended; ${message.session} is kept`);
      controls();
    },
    error(message) { end(message.message); closing = false; controls(); },
  };

  function level(side, db) {
    byId(`${side}-level`).value = db;
    byId(`${side}-db`).textContent = db <= -70 ? "quiet" : `${Math.round(db)} dBFS`.replace("-", "−");
  }

  function turns(rows) {
    if (!rows.length) return;
    const figure = (value) => (value === null ? "–" : String(Math.round(value)));
    const lines = rows.slice().reverse().map((row) => {
      if (row.first_audible_ms !== null) looks.set(row.number, (looks.get(row.number) || 0) + 1);
      // The first look may come before the sound has left firstpacket.
      if (looks.get(row.number) > 1 && delay.jitter_ms !== null && !heardHere.has(row.number)) {
        heardHere.set(row.number, { server_ms: wait, ...delay });
      }
      const added = heardHere.get(row.number);
      const here = added ? row.first_audible_ms + added.server_ms + added.jitter_ms + added.playout_ms : null;
      const line = element("tr");
      const cells = [["turn", String(row.number)], ["first", row.speaking ? "speaking" : figure(row.first_audible_ms)],
        ["here", figure(here)], ["ttft", figure(row.ttft_ms)], ["packet", figure(row.first_packet_ms)], ["stop", figure(row.barge_in_stop_ms)]];
      for (const [name, text] of cells) line.append(element("td", text, `n ${name}`));
      return line;
    });
    document.querySelector("#turns tbody").replaceChildren(...lines);
  }

  function texts(lines) {
    const list = byId("texts"), below = list.scrollTop + list.clientHeight >= list.scrollHeight - 20;
    list.replaceChildren(...lines.map(([who, text]) => {
      const item = element("li", undefined, who);
      item.append(element("b", who === "user" ? "you" : "agent"), element("span", text));
      return item;
    }));
    if (below) list.scrollTop = list.scrollHeight;
  }

  /* ---- buttons and keys --------------------------------------------------------------------------------------------------- */

  function controls() {
    byId("start").textContent = call ? "Stop" : "Start";
    byId("start").disabled = socket.readyState !== WebSocket.OPEN || closing || (Boolean(call) && !ready);
    byId("mute").disabled = !ready || pushing;
    byId("mute").hidden = pushing;
    byId("mute").setAttribute("aria-pressed", String(muted));
    byId("talk").hidden = !pushing;
    byId("talk").disabled = !ready;
    byId("talk").setAttribute("aria-pressed", String(held));
    for (const id of ["device", "echo", "noise", "ptt"]) byId(id).disabled = Boolean(call) || (id === "ptt" && hello.manual);
  }

  function mute() {
    if (!ready || pushing) return;
    muted = !muted;
    for (const track of microphone.getAudioTracks()) track.enabled = !muted;
    send({ type: "mute", on: muted });
    controls();
  }

  function talk(down) {
    if (!ready || !pushing || held === down) return;
    held = down;
    send({ type: "talk", on: down });
    controls();
  }

  byId("start").addEventListener("click", () => (call ? end("") : start()));
  byId("mute").addEventListener("click", mute);
  const button = byId("talk");
  button.addEventListener("pointerdown", (event) => { button.setPointerCapture(event.pointerId); talk(true); });
  for (const name of ["pointerup", "pointercancel", "lostpointercapture"]) button.addEventListener(name, () => talk(false));
  button.addEventListener("contextmenu", (event) => event.preventDefault());
  const elsewhere = (event) => event.target.closest && event.target.closest("button, select, input, summary") && event.target !== button;
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.code === "Space" && pushing && !elsewhere(event)) { event.preventDefault(); if (!event.repeat) talk(true); }
    if (event.key.toLowerCase() === "m" && !event.repeat && !elsewhere(event)) mute();
  });
  document.addEventListener("keyup", (event) => {
    if (event.code === "Space" && pushing) { if (!elsewhere(event)) event.preventDefault(); talk(false); }
  });
  addEventListener("blur", () => talk(false));

  async function listDevices() {
    const chosen = byId("device").value;
    const inputs = (await navigator.mediaDevices.enumerateDevices()).filter((device) => device.kind === "audioinput" && device.deviceId);
    byId("device").replaceChildren(new Option("the browser's choice", ""),
      ...inputs.filter((device) => device.deviceId !== "default").map((device, i) => new Option(device.label || `microphone ${i + 1}`, device.deviceId)));
    byId("device").value = [...byId("device").options].some((option) => option.value === chosen) ? chosen : "";
  }

  /* ---- the beginning -------------------------------------------------------------------------------------------------------- */

  socket = new WebSocket(`${location.protocol === "https:" ? "wss" : "ws"}://${location.host}${location.pathname}ws`);
  socket.addEventListener("message", (event) => {
    const message = JSON.parse(event.data);
    if (Object.hasOwn(on, message.type)) on[message.type](message);
  });
  socket.addEventListener("close", () => {
    end("");
    state("firstpacket has ended, or was started anew: use the address that it prints");
    controls();
  });
  if (navigator.mediaDevices) {
    listDevices();
    navigator.mediaDevices.addEventListener("devicechange", listDevices);
  } else {
    complain("this browser gives no microphone to this address: it must be 127.0.0.1, or https");
  }
  controls();
})();
