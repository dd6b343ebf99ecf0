/* The nodes that are open, as one list of rows: a row knows its path, its depth, and whether its children are in the list behind it.
   Children come in pages; a row that stands for those that are not yet read ends such a list.  Nothing here is an element. */
const TRIED = 20;

export function childPath(path, name) { return path === "/" ? "/" + name : `${path}/${name}`; }

export function parentPath(path) { return path.slice(0, Math.max(1, path.lastIndexOf("/"))); }

/* What a server says of a child, as far as it makes sense. */
function row(parent, child, depth) {
  return { path: childPath(parent.path, String(child.name)), name: String(child.name), depth, parent, children: Number(child.children) || 0,
           bytes: Number(child.bytes) || 0, ephemeral: child.ephemeral === true, open: false };
}

export class Rows {
  /* read(path, after) returns a promise of a page; without after, of the first one. */
  constructor(read) {
    this.read = read;
    this.root = { path: "/", name: "/", depth: 0, parent: null, children: 0, bytes: 0, ephemeral: false, open: false };
    this.list = [this.root];
  }

  indexOf(one) { return this.list.indexOf(one); }

  end(index) {
    const { depth } = this.list[index];
    let end = index + 1;
    while (end < this.list.length && this.list[end].depth > depth) end++;
    return end;
  }

  async open(one) {
    if (one.open || one.more) return;
    one.open = true;
    one.shown = new Set(); /* those that were put there before their page came */
    await this.next(one, null);
  }

  close(one) {
    const index = this.indexOf(one);
    if (index < 0 || !one.open) return;
    const end = this.end(index);
    this.list.splice(index + 1, end - index - 1);
    one.open = false;
  }

  /* The next page of a row's children; `rest` is the row that stands for them, null at first. */
  async next(one, rest) {
    if (one.loading) return;
    one.loading = true;
    let page;
    try { page = await this.page(one, rest); } catch (error) {
      if (!rest) one.open = false;
      throw error;
    } finally { one.loading = false; }
    const index = this.indexOf(one), at = rest ? this.list.lastIndexOf(rest) : index + 1;
    if (!one.open || index < 0 || at < 0) return; /* it was closed meanwhile */
    const sent = Array.isArray(page.children) ? page.children : [], more = page.more === true && sent.length > 0, depth = one.depth + 1;
    const made = sent.filter((child) => !one.shown.delete(String(child.name))).map((child) => row(one, child, depth));
    /* The server has them in no order that people know; all of them at once can be given one. */
    if (!rest && !more) made.sort((a, b) => (a.name < b.name ? -1 : 1));
    one.children = Number(page.total) || sent.length;
    one.refused = page.refused === true;
    one.read = (rest ? one.read : 0) + sent.length;
    if (more) made.push({ more: true, parent: one, depth, path: one.path, after: String(sent.at(-1).name) });
    this.list.splice(at, rest ? 1 : 0, ...made); /* a page is small; what may be a million is moved, not copied */
  }

  /* The last child of a page leads to the next page; if it is gone, one before it does. */
  async page(one, rest) {
    if (!rest) return this.read(one.path);
    const known = [rest.after];
    for (let i = this.list.lastIndexOf(rest) - 1; i > 0 && known.length < TRIED && this.list[i] !== one; i--) {
      if (this.list[i].parent === one && this.list[i].name !== rest.after && !one.shown.has(this.list[i].name)) known.push(this.list[i].name);
    }
    for (let i = 0; ; i++) {
      try { return await this.read(one.path, known[i]); } catch (error) { if (error.code !== "Gone" || i + 1 === known.length) throw error; }
    }
  }

  /* Opens what is above a path, and returns its row.  A name that is not among the children that were read is put before the rest. */
  async reveal(path) {
    let one = this.root;
    for (const name of path.split("/").filter(Boolean)) {
      await this.open(one);
      const index = this.indexOf(one), end = this.end(index);
      let found = null, rest = -1;
      for (let i = index + 1; i < end && !found; i++) {
        if (this.list[i].depth !== one.depth + 1) continue;
        if (this.list[i].more) rest = i;
        else if (this.list[i].name === name) found = this.list[i];
      }
      if (!found) {
        found = row(one, { name }, one.depth + 1);
        if (rest < 0) return found; /* all were read: it is not there */
        one.shown.add(name);
        this.list.splice(rest, 0, found);
      }
      one = found;
    }
    return one;
  }
}
