// The laboratory's commands, run in a worker:
//   const engine = createEngine();
//   const { status, out, err, files } = await engine.run(["sim", "central", "--trace", "json"], {});

// A page that holds everything in itself says here where the two files are, and its worker is no module.
const WORKER = globalThis.conclaveWorker ?? new URL("./worker.js", import.meta.url);
const MODULE = globalThis.conclaveModule ?? (() => fetch(new URL("./lab.wasm", import.meta.url)).then(bytesOf));

function bytesOf(response) {
  if (!response.ok) throw new Error(`lab.wasm: ${response.status} ${response.statusText}`);
  return response.arrayBuffer();
}

export class Cancelled extends Error {}

export function createEngine() {
  const bytes = MODULE();
  let worker = null;
  let waiting = new Map(); // number of a run -> what waits for it
  let runs = 0;

  function end(number, settle) {
    const run = waiting.get(number);
    waiting.delete(number);
    if (run) settle(run);
  }

  function failAll(error) {
    const all = waiting;
    waiting = new Map();
    for (const run of all.values()) run.reject(error);
  }

  function start() {
    const started = new Worker(WORKER, { type: globalThis.conclaveWorker ? "classic" : "module" });
    started.onmessage = ({ data }) => {
      if (data.progress !== undefined) waiting.get(data.number)?.onProgress?.(data.progress);
      else if (data.result) end(data.number, (run) => run.resolve(data.result));
      else end(data.number, (run) => run.reject(new Error(data.failed)));
    };
    started.onerror = (event) => failAll(new Error(event.message || "the worker has failed"));
    worker = started;
    return bytes.then((loaded) => started.postMessage({ bytes: loaded }));
  }

  let ready = start();

  return {
    // Commands run one after another.
    async run(words, files = {}, { onProgress } = {}) {
      const number = ++runs, result = new Promise((resolve, reject) => {
        waiting.set(number, { resolve, reject, onProgress });
      });
      result.catch(() => {}); // it may fail before the caller awaits it
      const mine = worker;
      try {
        await ready;
        if (mine === worker) mine.postMessage({ number, words, files, watched: Boolean(onProgress) });
      } catch (error) {
        end(number, (run) => run.reject(error));
      }
      return result;
    },

    // Ends all runs, whose promises are rejected with Cancelled.
    cancel() {
      worker.terminate();
      failAll(new Cancelled("cancelled"));
      ready = start();
    },
  };
}
