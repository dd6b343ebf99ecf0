// Runs commands of the laboratory beside the page, so that nothing there waits.
import { runCommand } from "./host.js";

let module = null;

self.onmessage = async ({ data }) => {
  if (data.bytes) {
    module = WebAssembly.compile(data.bytes);
    module.catch(() => {}); // whoever runs a command hears of it
    return;
  }
  const { number, words, files, watched } = data;
  try {
    const onProgress = watched ? (text) => self.postMessage({ number, progress: text }) : undefined;
    self.postMessage({ number, result: runCommand(await module, words, files, onProgress) });
  } catch (error) {
    self.postMessage({ number, failed: String(error.message ?? error) });
  }
};
