// node-zookeeper-client, a client in plain JavaScript, against a server.
//   NODE_PATH=... node node_client.js HOST:PORT NAME   runs one test;  --list   names them.
'use strict';
const assert = require('assert');
const { promisify } = require('util');
const zookeeper = require('node-zookeeper-client');

const { CreateMode, Event, Exception, Permission, ACL, Id } = zookeeper;
const TIMEOUT_MS = 1000 * (process.env.PATIENCE || 120);

// The client's calls as promises; those that take a watcher keep it as their second argument.
function enter(address) {
    const client = zookeeper.createClient(address, { sessionTimeout: 40000 });
    const calls = ['create', 'setData', 'remove', 'exists', 'getData', 'getChildren', 'getACL',
        'setACL', 'mkdirp'];
    const own = { client };
    for (const name of calls) {
        own[name] = (...args) => new Promise((done, failed) =>
            client[name](...args, (error, ...results) => (error ? failed(error) : done(results))));
    }
    own.commit = transaction => promisify(transaction.commit.bind(transaction))();
    own.close = () => new Promise(done => {
        client.once('disconnected', done);
        client.close();
    });
    return new Promise(done => {
        client.once('connected', () => done(own));
        client.connect();
    });
}

const refuses = (code, promise) => assert.rejects(promise, error => error.getCode() === code);

const tests = {
    async nodes(zk) {
        assert.deepStrictEqual(await zk.create('/a', Buffer.from('one')), ['/a']);
        await refuses(Exception.NODE_EXISTS, zk.create('/a'));
        let [data, stat] = await zk.getData('/a');
        assert.strictEqual(data.toString(), 'one');
        assert.strictEqual(stat.version, 0);
        [stat] = await zk.setData('/a', Buffer.from('two'), 0);
        assert.strictEqual(stat.version, 1);
        await refuses(Exception.BAD_VERSION, zk.setData('/a', Buffer.from('late'), 0));
        await zk.mkdirp('/a/b/c');
        const [children, parent] = await zk.getChildren('/a');
        assert.deepStrictEqual(children, ['b']);
        assert.strictEqual(parent.numChildren, 1);
        await refuses(Exception.NOT_EMPTY, zk.remove('/a', -1));
        await zk.remove('/a/b/c', -1);
        assert.strictEqual((await zk.exists('/a/b/c'))[0], null);
        await refuses(Exception.NO_NODE, zk.getData('/a/b/c'));
    },

    async modes(zk, address) {
        const other = await enter(address);
        await other.create('/plain');
        for (const number of [1, 2]) {
            const [path] = await other.create('/s-', null, CreateMode.EPHEMERAL_SEQUENTIAL);
            assert.strictEqual(path, `/s-000000000${number}`);
        }
        await refuses(Exception.NO_CHILDREN_FOR_EPHEMERALS, other.create('/s-0000000001/c'));
        await other.close();
        assert.deepStrictEqual((await zk.getChildren('/'))[0], ['plain']);
    },

    async watches(zk, address) {
        const seen = [];
        const note = event => seen.push([event.getType(), event.getPath()]);
        const writer = await enter(address);
        await zk.exists('/n', note);
        await writer.create('/n');
        await zk.getData('/n', note);
        await writer.setData('/n', Buffer.from('x'), -1);
        await zk.getChildren('/n', note);
        await writer.create('/n/c');
        await writer.create('/n/d');
        await zk.getData('/n/c', note);
        await writer.remove('/n/c', -1);
        await writer.close();
        await zk.exists('/n'); // whatever was sent before this answer has come
        assert.deepStrictEqual(seen, [[Event.NODE_CREATED, '/n'], [Event.NODE_DATA_CHANGED, '/n'],
            [Event.NODE_CHILDREN_CHANGED, '/n'], [Event.NODE_DELETED, '/n/c']]);
    },

    async transactions(zk) {
        const results = await zk.commit(zk.client.transaction().create('/t').create('/t/c', Buffer.from('x'))
            .setData('/t', Buffer.from('y'), 0).check('/t', 1).remove('/t/c', 0));
        assert.strictEqual(results.length, 5);
        assert.strictEqual(results[0].path, '/t');
        assert.strictEqual(results[2].stat.version, 1);
        await refuses(Exception.BAD_VERSION,
            zk.commit(zk.client.transaction().create('/never').check('/t', 9).remove('/t', -1)));
        assert.deepStrictEqual((await zk.getChildren('/'))[0], ['t']);
    },

    async permissions(zk, address) {
        const owner = await enter(address);
        owner.client.addAuthInfo('digest', Buffer.from('user1:12345'));
        const mine = [new ACL(Permission.ALL, new Id('auth', ''))];
        await refuses(Exception.INVALID_ACL, zk.create('/n', null, mine, CreateMode.PERSISTENT));
        await owner.create('/n', Buffer.from('secret'), mine, CreateMode.PERSISTENT);
        const [[acl]] = await owner.getACL('/n');
        assert.deepStrictEqual([acl.permission, acl.id.scheme, acl.id.id],
            [Permission.ALL, 'digest', 'user1:+owfoSBn/am19roBPzR1/MfCblE=']);
        await refuses(Exception.NO_AUTH, zk.getData('/n'));
        await refuses(Exception.NO_AUTH, zk.setACL('/n', ACL.OPEN_ACL_UNSAFE, -1));
        const [stat] = await owner.setACL('/n', ACL.OPEN_ACL_UNSAFE, 0);
        assert.strictEqual(stat.aversion, 1);
        assert.strictEqual((await zk.getData('/n'))[0].toString(), 'secret');
        await owner.close();
    },
};

async function main() {
    const [address, name] = process.argv.slice(2);
    if (address === '--list') {
        console.log(Object.keys(tests).join('\n'));
        return;
    }
    setTimeout(() => {
        console.error(`not within ${TIMEOUT_MS} ms`);
        process.exit(75); // as in patience.py
    }, TIMEOUT_MS).unref();
    const root = `/node-${name}-${process.pid}`;
    const maker = await enter(address);
    await maker.create(root);
    await maker.close();
    const zk = await enter(address + root);
    await tests[name](zk, address + root);
    await zk.close();
}

main().catch(error => {
    console.error(error);
    process.exit(1);
});
