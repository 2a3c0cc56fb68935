// Simulates in the background: a request comes in, results and progress go out.
const PROGRESS_MS = 50;

onmessage = async ({ data: { module, request } }) => {
  let told = 0;
  const progress = (done) => {
    const now = performance.now();
    if (now - told >= PROGRESS_MS) {
      told = now;
      postMessage({ done });
    }
  };
  const { instance } = await WebAssembly.instantiate(module, { page: { progress } });
  const wasm = instance.exports;
  const answer = () =>
    new TextDecoder().decode(new Uint8Array(wasm.memory.buffer, wasm.answer(), wasm.answer_bytes()));
  const bytes = new TextEncoder().encode(JSON.stringify(request));
  const address = wasm.request(bytes.length);
  new Uint8Array(wasm.memory.buffer, address, bytes.length).set(bytes);
  const events = wasm.begin();
  if (events < 0) return postMessage({ error: answer() });
  postMessage({ events });
  let more;
  do {
    more = wasm.step();
    postMessage(more < 0 ? { error: answer() } : { text: answer(), over: more === 0 });
  } while (more > 0);
};
