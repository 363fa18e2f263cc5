// In a page that has loaded the SDK's bundle: a call over WebRTC with whatever answers at `url`; resolves to what it
// saw. `clip` is the URL of a WAV that is said; the microphone is a Web Audio graph, so that it speaks when told to.
async function drive({ url, clip }) {
  const { RealtimeAgent, RealtimeSession, OpenAIRealtimeWebRTC } = window.OpenAIAgentsRealtime;
  const PATIENCE_MS = 30_000;
  const LOUD = 0.01; // of full scale
  const rest = (ms) => new Promise((resolve) => setTimeout(resolve, ms));

  const context = new AudioContext({ sampleRate: 48_000 });
  const microphone = context.createMediaStreamDestination();
  const quiet = new ConstantSourceNode(context, { offset: 0 }); // a microphone never stops, a graph at rest does
  quiet.connect(microphone);
  quiet.start();
  const speech = await context.decodeAudioData(await (await fetch(clip)).arrayBuffer());
  const say = () => {
    const source = new AudioBufferSourceNode(context, { buffer: speech });
    source.connect(microphone);
    source.start();
  };

  const audioElement = document.createElement('audio');
  const transport = new OpenAIRealtimeWebRTC({
    baseUrl: url,
    useInsecureApiKey: true,
    mediaStream: microphone.stream,
    audioElement,
  });
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
  const failures = [];
  transport.on('*', (event) => events.push(event));
  session.on('error', (error) => failures.push(String(error?.error?.message ?? JSON.stringify(error))));
  const named = (name) => events.filter((event) => event.type === name);
  const until = async (what, test) => {
    const deadline = performance.now() + PATIENCE_MS;
    while (!(await test())) {
      if (performance.now() > deadline) throw new Error(`no ${what} among ${events.map((e) => e.type)} ${failures}`);
      await rest(20);
    }
  };

  await session.connect({ apiKey: 'none' });
  const call = transport.callId;

  // A listener at the loudspeaker: the loudest sample since it was last asked.
  const ear = new AnalyserNode(context, { fftSize: 2048 });
  context.createMediaStreamSource(audioElement.srcObject).connect(ear);
  const heard = new Float32Array(ear.fftSize);
  const loudness = () => {
    ear.getFloatTimeDomainData(heard);
    return heard.reduce((most, sample) => Math.max(most, Math.abs(sample)), 0);
  };

  const before = loudness();
  say(); // 1: a spoken turn, cut off by the user's voice
  await until('sound of the first answer', () => loudness() > LOUD);
  await until('start of the loudspeaker', () => named('output_audio_buffer.started').length === 1);
  say();
  await until('end of the first answer', () => named('response.done').length === 1);
  await until('sound of the second answer', () => named('response.created').length === 2 && loudness() > LOUD);
  await rest(200); // the loudspeaker has begun: else there is nothing to clear
  session.interrupt(); // 2: cut off by the program
  await until('end of the second answer', () => named('response.done').length === 2);
  await until('cleared loudspeaker', () => named('output_audio_buffer.cleared').length === 2);
  await until('silence', () => loudness() === 0 || loudness() < LOUD);
  const statuses = named('response.done').map(({ response }) => [response.status, response.status_details?.reason]);
  session.close();
  return {
    call,
    before,
    statuses,
    types: [...new Set(events.map((event) => event.type))],
    errors: named('error').map((event) => event.error.code),
    loudspeaker: events
      .filter((event) => event.type.startsWith('output_audio_buffer.'))
      .map((event) => [event.type.split('.')[1], event.response_id]),
    failures,
  };
}
