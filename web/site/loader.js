// The page in one file, as a browser opens it from a disk too: its modules and its worker become
// addresses of texts in the document, and the laboratory's module is unpacked from it.
{
  const sources = new Map([...document.querySelectorAll("script[data-name]")].map((script) => [script.dataset.name, script.textContent]));
  const addresses = new Map();

  const addressOf = (name) => {
    if (!addresses.has(name)) {
      const source = sources.get(name).replace(/\b(from|import)(\s*)"\.\/([\w.-]+)"/g, (_, word, space, other) => `${word}${space}"${addressOf(other)}"`);
      addresses.set(name, URL.createObjectURL(new Blob([source], { type: "text/javascript" })));
    }
    return addresses.get(name);
  };

  const unpack = (text) => {
    const packed = Uint8Array.from(atob(text), (letter) => letter.charCodeAt(0));
    const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("gzip"));
    return new Response(stream).arrayBuffer();
  };

  // A worker that is a module would have to come from a server, so this one is a script without imports.
  const worker = ["host.js", "worker.js"].map((name) => sources.get(name).replace(/^import [^;]*;$/gm, "").replace(/^export /gm, ""));
  globalThis.conclaveWorker = URL.createObjectURL(new Blob(worker, { type: "text/javascript" }));
  globalThis.conclaveModule = () => unpack(document.getElementById("lab.wasm.gz").textContent.trim());
  import(addressOf(document.currentScript.dataset.start));
}
