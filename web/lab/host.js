// What the laboratory's module asks of a system: words, files that are texts, and a clock.
// One instance runs one command, from memory that nobody has used.

const ERRNO = { SUCCESS: 0, ACCES: 2, BADF: 8, EXIST: 20, INVAL: 28, NOENT: 44, NOSYS: 52, NOTDIR: 54 };
const CHARACTER_DEVICE = 2, DIRECTORY = 3, REGULAR_FILE = 4;
const PREOPENED = 3; // the folder in which the files are
const CREATE = 1, EXCLUSIVE = 4, TRUNCATE = 8; // flags of path_open
const PROGRESS = /\r[^\r\n]*?\x1b\[K/g;

class Exit extends Error {
  constructor(status) {
    super("exit");
    this.status = status;
  }
}

// Bytes that grow.
class Output {
  bytes = new Uint8Array(1 << 12);
  size = 0;

  add(part, at = this.size) {
    const end = at + part.length;
    if (end > this.bytes.length) {
      const more = new Uint8Array(Math.max(end, 2 * this.bytes.length));
      more.set(this.bytes.subarray(0, this.size));
      this.bytes = more;
    }
    this.bytes.set(part, at);
    this.size = Math.max(this.size, end);
  }

  text() {
    return new TextDecoder().decode(this.bytes.subarray(0, this.size));
  }
}

function outputOf(bytes) {
  const content = new Output();
  content.add(bytes);
  return content;
}

// The files that the module carries with it: "NAME SIZE", a line feed, and so many bytes.
function* carried(module) {
  for (const section of WebAssembly.Module.customSections(module, "files")) {
    const bytes = new Uint8Array(section);
    for (let at = 0; at < bytes.length;) {
      const end = bytes.indexOf(10, at);
      const [name, size] = new TextDecoder().decode(bytes.subarray(at, end)).split(" ");
      at = end + 1 + Number(size);
      yield [name, outputOf(bytes.subarray(end + 1, at))];
    }
  }
}

class Host {
  constructor(module, words, files, onProgress) {
    this.module = module;
    this.given = files ?? {};
    this.words = ["conclave", ...words].map((word) => new TextEncoder().encode(word + "\0"));
    this.files = new Map(carried(module));
    for (const [name, text] of Object.entries(this.given)) this.files.set(name, outputOf(new TextEncoder().encode(text)));
    this.folders = new Set([".", ...[...this.files.keys()].filter((name) => name.includes("/")).map((name) => name.replace(/\/[^/]*$/, ""))]);
    this.written = new Set();
    this.out = new Output();
    this.err = new Output();
    this.onProgress = onProgress;
    this.open = new Map([
      [0, { content: new Output(), at: 0 }],
      [1, { content: this.out, at: 0, device: true }],
      [2, { content: this.err, at: 0, device: true, watched: Boolean(onProgress) }],
    ]);
  }

  get view() {
    return new DataView(this.memory.buffer);
  }

  bytes(at, size) {
    return new Uint8Array(this.memory.buffer, at, size);
  }

  name(at, size) {
    return new TextDecoder().decode(this.bytes(at, size)).replace(/^(\.\/)+(?=.)/, "").replace(/(.)\/$/, "$1");
  }

  // ---- Words ----

  args_sizes_get(count, size) {
    this.view.setUint32(count, this.words.length, true);
    this.view.setUint32(size, this.words.reduce((sum, word) => sum + word.length, 0), true);
    return ERRNO.SUCCESS;
  }

  args_get(pointers, buffer) {
    for (const word of this.words) {
      this.view.setUint32(pointers, buffer, true);
      this.bytes(buffer, word.length).set(word);
      pointers += 4;
      buffer += word.length;
    }
    return ERRNO.SUCCESS;
  }

  // ---- Files ----

  fd_prestat_get(fd, result) {
    if (fd !== PREOPENED) return ERRNO.BADF;
    this.view.setUint32(result, 0, true);
    this.view.setUint32(result + 4, 1, true);
    return ERRNO.SUCCESS;
  }

  fd_prestat_dir_name(fd, at) {
    this.bytes(at, 1)[0] = ".".charCodeAt(0);
    return ERRNO.SUCCESS;
  }

  // A terminal is what has progress to show.
  fd_fdstat_get(fd, result) {
    const file = this.open.get(fd);
    if (!file && fd !== PREOPENED) return ERRNO.BADF;
    const type = file?.watched ? CHARACTER_DEVICE : file && !file.folder ? REGULAR_FILE : DIRECTORY;
    const rights = file?.watched ? 0x40n : 0x1fffffffn; // a terminal cannot seek
    this.bytes(result, 24).fill(0);
    this.view.setUint8(result, type);
    this.view.setBigUint64(result + 8, rights, true);
    this.view.setBigUint64(result + 16, rights, true);
    return ERRNO.SUCCESS;
  }

  path_open(folder, lookup, path, length, flags, base, inheriting, status, result) {
    const name = this.name(path, length);
    if (this.folders.has(name)) return this.opened({ folder: name }, result);
    let content = this.files.get(name);
    if (!content && !(flags & CREATE)) return ERRNO.NOENT;
    if (content && flags & EXCLUSIVE) return ERRNO.EXIST;
    if (!content || flags & TRUNCATE) {
      content = new Output();
      this.files.set(name, content);
      this.written.add(name);
    }
    return this.opened({ content, at: 0 }, result);
  }

  opened(file, result) {
    let fd = PREOPENED + 1;
    while (this.open.has(fd)) fd++;
    this.open.set(fd, file);
    this.view.setUint32(result, fd, true);
    return ERRNO.SUCCESS;
  }

  path_filestat_get(folder, lookup, path, length, result) {
    const name = this.name(path, length), content = this.files.get(name);
    if (!content && !this.folders.has(name)) return ERRNO.NOENT;
    this.bytes(result, 64).fill(0);
    this.view.setUint8(result + 16, content ? REGULAR_FILE : DIRECTORY);
    this.view.setBigUint64(result + 24, 1n, true);
    this.view.setBigUint64(result + 32, BigInt(content?.size ?? 0), true);
    return ERRNO.SUCCESS;
  }

  path_create_directory(folder, path, length) {
    const name = this.name(path, length);
    if (this.folders.has(name) || this.files.has(name)) return ERRNO.EXIST;
    this.folders.add(name);
    return ERRNO.SUCCESS;
  }

  // As many entries as fit, from the one that `cookie` counts to; each is a head of 24 bytes and a name.
  fd_readdir(fd, buffer, size, cookie, result) {
    const folder = this.open.get(fd)?.folder;
    if (!folder) return ERRNO.BADF;
    const names = [...this.files.keys()].filter((name) => name.startsWith(folder + "/")).map((name) => new TextEncoder().encode(name.slice(folder.length + 1)));
    const listing = new Output();
    for (let i = Number(cookie); i < names.length && listing.size < size; i++) {
      const head = new DataView(new ArrayBuffer(24));
      head.setBigUint64(0, BigInt(i + 1), true);
      head.setBigUint64(8, BigInt(i + 1), true);
      head.setUint32(16, names[i].length, true);
      head.setUint8(20, REGULAR_FILE);
      listing.add(new Uint8Array(head.buffer));
      listing.add(names[i]);
    }
    const used = Math.min(size, listing.size);
    this.bytes(buffer, used).set(listing.bytes.subarray(0, used));
    this.view.setUint32(result, used, true);
    return ERRNO.SUCCESS;
  }

  fd_close(fd) {
    return this.open.delete(fd) ? ERRNO.SUCCESS : ERRNO.BADF;
  }

  fd_seek(fd, offset, whence, result) {
    const file = this.open.get(fd);
    if (!file || file.device) return ERRNO.INVAL;
    file.at = Number(offset) + [0, file.at, file.content.size][whence];
    this.view.setBigUint64(result, BigInt(file.at), true);
    return ERRNO.SUCCESS;
  }

  *vectors(at, count) {
    for (let i = 0; i < count; i++, at += 8)
      yield this.bytes(this.view.getUint32(at, true), this.view.getUint32(at + 4, true));
  }

  fd_write(fd, vectors, count, result) {
    const file = this.open.get(fd);
    if (!file) return ERRNO.BADF;
    let sum = 0;
    for (const part of this.vectors(vectors, count)) {
      file.content.add(part, file.at);
      file.at += part.length;
      sum += part.length;
    }
    this.view.setUint32(result, sum, true);
    if (file.watched) this.report();
    return ERRNO.SUCCESS;
  }

  fd_read(fd, vectors, count, result) {
    const file = this.open.get(fd);
    if (!file) return ERRNO.BADF;
    let sum = 0;
    for (const part of this.vectors(vectors, count)) {
      const some = file.content.bytes.subarray(file.at, Math.min(file.at + part.length, file.content.size));
      part.set(some);
      file.at += some.length;
      sum += some.length;
    }
    this.view.setUint32(result, sum, true);
    return ERRNO.SUCCESS;
  }

  // What a terminal would overwrite is progress, and no part of the text.
  report() {
    const file = this.open.get(2), text = this.err.text(), rest = text.replace(PROGRESS, "");
    if (rest === text) return;
    const last = text.match(PROGRESS).at(-1).slice(1, -3).trim();
    this.err = file.content = new Output();
    this.err.add(new TextEncoder().encode(rest));
    file.at = this.err.size;
    if (last) this.onProgress(last);
  }

  // ---- Commands that a command runs: another instance for each ----

  run(words, size, keep) {
    const list = new TextDecoder().decode(this.bytes(words, size)).split("\0").slice(0, -1);
    const { out, err } = runCommand(this.module, list, this.given);
    this.err.add(new TextEncoder().encode(err));
    this.open.get(2).at = this.err.size;
    this.kept = new TextEncoder().encode(out);
    if (keep) return this.kept.length;
    this.out.add(this.kept);
    this.open.get(1).at = this.out.size;
    return 0;
  }

  output(to) {
    this.bytes(to, this.kept.length).set(this.kept);
  }

  // ---- The rest ----

  clock_time_get(clock, precision, result) {
    this.view.setBigUint64(result, BigInt(Math.round(performance.now() * 1e6)), true);
    return ERRNO.SUCCESS;
  }

  proc_exit(status) {
    throw new Exit(status);
  }
}

const FUNCTIONS = [
  "args_sizes_get", "args_get", "fd_prestat_get", "fd_prestat_dir_name", "fd_fdstat_get", "path_open",
  "path_filestat_get", "path_create_directory", "fd_readdir", "fd_close", "fd_seek", "fd_write", "fd_read", "clock_time_get", "proc_exit",
];

function imports(module, host) {
  const wasi_snapshot_preview1 = {};
  for (const { module: from, name } of WebAssembly.Module.imports(module))
    if (from === "wasi_snapshot_preview1") wasi_snapshot_preview1[name] = FUNCTIONS.includes(name) ? host[name].bind(host) : () => ERRNO.NOSYS;
  return { wasi_snapshot_preview1, conclave: { run: host.run.bind(host), output: host.output.bind(host) } };
}

// Runs a command to its end.  `files` in the result are those that it has written.
export function runCommand(module, words, files, onProgress) {
  const host = new Host(module, words, files, onProgress);
  let status = 0;
  try {
    const instance = new WebAssembly.Instance(module, imports(module, host));
    host.memory = instance.exports.memory;
    instance.exports._start();
  } catch (error) {
    if (error instanceof Exit) {
      status = error.status;
    } else {
      status = 3;
      host.err.add(new TextEncoder().encode(`conclave: the module has failed: ${error.message}\n`));
    }
  }
  const written = {};
  for (const name of host.written) written[name] = host.files.get(name).text();
  return { status, out: host.out.text(), err: host.err.text(), files: written };
}
