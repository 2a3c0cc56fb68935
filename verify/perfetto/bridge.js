// Perfetto's trace processor as a program: the WebAssembly engine of its web interface, run by node, talks its usual
// protocol (a stream of TraceProcessorRpc messages) on standard input and output.
//
// Usage: node bridge.js DIRECTORY, where DIRECTORY holds engine_bundle.js and trace_processor*.wasm.
'use strict';

const fs = require('node:fs');
const path = require('node:path');
const vm = require('node:vm');

const directory = process.argv[2];
const read = (name) => fs.readFileSync(path.join(directory, path.basename(name)));

/** The request by which the engine asks for its WebAssembly file; it waits for the answer. */
class FileRequest {
  open(_method, url) {
    this.url = url;
  }

  send() {
    this.response = read(this.url);
  }
}

// The engine is made for a worker of a browser, and refuses to run where it sees node: it gets a world of its own.
const world = vm.createContext({
  // What the engine says must not get between the messages.
  console: new console.Console(process.stderr),
  WorkerGlobalScope: class {},
  XMLHttpRequest: FileRequest,
  location: { href: 'http://engine/engine_bundle.js' },
  TextDecoder, TextEncoder, URL, crypto, performance, queueMicrotask, setTimeout,
});
world.self = world;

const port = { postMessage: write };
vm.runInContext(read('engine_bundle.js').toString(), world);
const Bytes = vm.runInContext('Uint8Array', world);
world.onmessage({ data: port });
// The engine is ready after what it has put off until now.
setTimeout(() => process.stdin.on('data', (bytes) => port.onmessage({ data: new Bytes(bytes) })));

/** Writes all, however little a pipe takes at once. */
function write(bytes) {
  for (let at = 0; at < bytes.length; ) {
    try {
      at += fs.writeSync(1, bytes, at);
    } catch (error) {
      if (error.code !== 'EAGAIN') throw error;
    }
  }
}
