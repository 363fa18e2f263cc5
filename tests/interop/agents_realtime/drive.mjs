// A session of OpenAI's agents SDK with whatever listens at a URL; the last line printed is what it saw, as JSON.
// Arguments: the folder with node_modules, the URL, a file of PCM16 at 24 kHz that is said.
import { createRequire } from 'node:module';
import { readFileSync } from 'node:fs';
import { join } from 'node:path';

const [folder, url, clip] = process.argv.slice(2);
const require = createRequire(join(folder, 'package.json'));
const { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebSocket } = require('@openai/agents-realtime');

const PATIENCE_MS = 30_000;
const PLAYED_MS = 400; // the SDK has then played what came last, by its own estimate
const STEP_MS = 20;
const STEP_BYTES = 960;
const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

const transport = new OpenAIRealtimeWebSocket({ url, useInsecureApiKey: true });
const agent = new RealtimeAgent({ name: 'interop', instructions: 'Be brief.' });
const session = new RealtimeSession(agent, {
  transport,
  model: 'gpt-realtime',
  tracingDisabled: true,
  config: {
    audio: { input: { turnDetection: { type: 'server_vad', interruptResponse: true, createResponse: true } } },
  },
});

const events = [];
const audio = {}; // bytes by response
const moments = [];
const failures = [];
transport.on('*', (event) => events.push(event));
transport.on('audio', (event) => {
  audio[event.responseId] = (audio[event.responseId] ?? 0) + event.data.byteLength;
});
for (const name of ['audio_start', 'audio_stopped', 'audio_interrupted']) session.on(name, () => moments.push(name));
session.on('error', (error) => failures.push(JSON.stringify(error).slice(0, 400)));

async function until(what, test) {
  const deadline = performance.now() + PATIENCE_MS;
  while (!test()) {
    if (performance.now() > deadline) throw new Error(`no ${what} among ${events.map((e) => e.type)}`);
    await rest(5);
  }
}

const done = () => events.filter((event) => event.type === 'response.done');
const truncated = () => events.filter((event) => event.type === 'conversation.item.truncated');
const answering = (number) => audio[`resp_${number}`] > 0;

// The microphone never stops: speech from the queue, else silence, a step each 20 ms.
let queue = Buffer.alloc(0);
let open = true;
async function microphone() {
  let next = performance.now();
  while (open) {
    const step = Buffer.alloc(STEP_BYTES);
    queue.copy(step, 0, 0, STEP_BYTES);
    queue = queue.subarray(STEP_BYTES);
    session.sendAudio(step.buffer);
    next += STEP_MS;
    await rest(Math.max(0, next - performance.now()));
  }
}

async function main() {
  const speech = readFileSync(clip);
  await session.connect({ apiKey: 'none', url });
  const listening = microphone();

  queue = speech; // 1: a spoken turn, answered to its end
  await until('first answer', () => done().length === 1);
  await rest(PLAYED_MS);

  queue = speech; // 2: a spoken turn, cut off by the user's voice
  await until('second answer', () => answering(2));
  queue = speech;
  await until('interruption', () => done().length === 2 && truncated().length === 1);
  await until('third answer', () => answering(3));

  session.interrupt(); // 3: cut off by the program
  await until('cancellation', () => done().length === 3 && truncated().length === 2);

  open = false;
  await listening;
  session.sendMessage('And in writing?'); // 4: a written turn
  await until('fourth answer', () => done().length === 4);
  const history = session.history.map((item) => ({
    role: item.role,
    status: item.status,
    text: (item.content ?? []).map((part) => part.transcript ?? part.text ?? '').join(''),
  }));
  session.close();
  return {
    responses: done().map(({ response }) => ({
      status: response.status,
      reason: response.status_details?.reason ?? null,
      usage: response.usage ?? null,
      audio_bytes: audio[response.id] ?? 0,
    })),
    truncated: truncated().map((event) => event.audio_end_ms),
    errors: events.filter((event) => event.type === 'error').map((event) => event.error.code),
    history,
    moments,
    failures,
  };
}

main().then(
  (seen) => process.stdout.write(`${JSON.stringify(seen)}\n`, () => process.exit(0)),
  (error) => {
    console.error(error, moments, failures);
    process.exit(1);
  },
);
