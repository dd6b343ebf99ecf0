// Increments a file without atomics under one of Curator's locks, as a program in Java would:
//   curator.js SERVER PATH CYCLES DIRECTORY mutex|read|write|latch
// Rhino runs it, with Debian's jars of Curator (tests/suites/recipes.sh).  For readers the file only is the same when they
// look twice.  What waited in vain ends with status 75.
var curator = Packages.org.apache.curator;
var seconds = java.util.concurrent.TimeUnit.SECONDS;
var patience = Number(java.lang.System.getenv("PATIENCE") || 120);
var Files = java.nio.file.Files, Text = java.lang.String;
var server = arguments[0], path = arguments[1], cycles = Number(arguments[2]), directory = arguments[3], kind = arguments[4];
var number = java.nio.file.Paths.get(directory, "number"), log = java.nio.file.Paths.get(directory, "log");

function late(what) {
    java.lang.System.err.println("not within " + patience + " s: " + what);
    java.lang.System.exit(75);
}
function read() { return Number(new Text(Files.readAllBytes(number)).trim()); }
function now() { return Math.floor(java.lang.System.nanoTime() / 1000); }
function append(file, text) {
    Files.write(file, new Text(text).getBytes(), java.nio.file.StandardOpenOption.APPEND, java.nio.file.StandardOpenOption.CREATE);
}

var client = curator.framework.CuratorFrameworkFactory.newClient(server, 40000, patience * 1000,
    new curator.retry.RetryForever(100));
client.start();
if (!client.blockUntilConnected(patience, seconds)) late("a connection");
var both = new curator.framework.recipes.locks.InterProcessReadWriteLock(client, path);
// A latch is for one lead: each has its own.
var latch = { acquire: function (time, unit) {
    this.one = new curator.framework.recipes.leader.LeaderLatch(client, path);
    this.one.start();
    return this.one.await(time, unit);
}, release: function () { this.one.close(); } };
var lock = kind == "latch" ? latch : kind == "read" ? both.readLock() : kind == "write" ? both.writeLock()
    : new curator.framework.recipes.locks.InterProcessMutex(client, path);
for (var i = 0; i < cycles; i++) {
    if (!lock.acquire(patience, seconds)) late("the lock");
    var begin = now(), value = read();
    if (kind != "read") Files.write(number, new Text((value + 1) + "\n").getBytes());
    else if (read() != value) throw "a writer beside a reader";
    append(log, (kind == "read" ? "s " : "x ") + begin + " " + now() + " 0 1\n");
    lock.release();
}
client.close();
