#include "load.h"

#include <getopt.h>
#include <inttypes.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "base/parse.h"

static const char help[] =
    "Usage: load --operation OPERATION [OPTION...]\n"
    "Puts load on a server, and prints the results as a line of JSON.\n\n"
    "  get, set         existing values (ZooKeeper, Redis; etcd: set)\n"
    "  create           new nodes; removed afterwards, unless --keep is given\n"
    "  lock             cycles of an uncontended lock\n"
    "  contended        cycles of a lock that all connections want\n"
    "  watchers         from a change until the last of the connections has its event\n"
    "  idle             sessions that do nothing until standard input ends\n"
    "  answer           until a server that is starting answers a client\n"
    "  fail-over        until a write succeeds after a process was killed or stopped\n"
    "  gap              times between such writes, with or without a victim\n"
    "  ping-pong        an echo over TCP: what the machine can do\n"
    "  overwrite        records synced to disk, over zeros: what the disk can do\n"
    "  append           the same at the end of a file that grows\n\n"
    "  --protocol zookeeper|redis|etcd\n"
    "  --host 127.0.0.1  --port 2181[,PORT...]  --directory . (of the file on the disk)\n"
    "  --connections 1   --outstanding 1 (cycles of each)  --value 100 (bytes)\n"
    "  --seconds 2       --warm 0.2 (seconds before that)  --requests N (instead of a time)\n"
    "  --victim PID      --signal 9 (fail-over, gap: what ends it)\n";

void die(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fputs("load: ", stderr);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(1);
}

/* ---- Options ---- */

enum option_key {
    OPERATION = 1,
    PROTOCOL,
    HOST,
    PORT,
    DIRECTORY,
    CONNECTIONS,
    OUTSTANDING,
    VALUE,
    SECONDS,
    WARM,
    REQUESTS,
    KEEP,
    VICTIM,
    SIGNAL,
    HELP,
};

static const struct option options[] = {
    {"operation", 1, NULL, OPERATION},
    {"protocol", 1, NULL, PROTOCOL},
    {"host", 1, NULL, HOST},
    {"port", 1, NULL, PORT},
    {"directory", 1, NULL, DIRECTORY},
    {"connections", 1, NULL, CONNECTIONS},
    {"outstanding", 1, NULL, OUTSTANDING},
    {"value", 1, NULL, VALUE},
    {"seconds", 1, NULL, SECONDS},
    {"warm", 1, NULL, WARM},
    {"requests", 1, NULL, REQUESTS},
    {"keep", 0, NULL, KEEP},
    {"victim", 1, NULL, VICTIM},
    {"signal", 1, NULL, SIGNAL},
    {"help", 0, NULL, HELP},
    {0},
};

static uint64_t number_in(const char *text, uint64_t min, uint64_t max) {
    uint64_t value;
    if (parse_u64(text, &value) != 0 || value < min || value > max)
        die("'%s' is not a number from %" PRIu64 " to %" PRIu64, text, min, max);
    return value;
}

static uint64_t number(uint64_t min, uint64_t max) { return number_in(optarg, min, max); }

static void take_ports(struct load *load) {
    load->port_count = 0;
    for (char *text; (text = strsep(&optarg, ","));) {
        if (load->port_count == PORTS_MAX) die("more than %u ports", PORTS_MAX);
        load->ports[load->port_count++] = (unsigned)number_in(text, 1, 65535);
    }
}

static double real(void) {
    double value;
    if (parse_real(optarg, &value) != 0 || value < 0) die("'%s' is not a time", optarg);
    return value;
}

static const struct protocol *protocol_named(const char *name) {
    if (strcmp(name, redis.name) == 0) return &redis;
    if (strcmp(name, zookeeper.name) == 0) return &zookeeper;
    if (strcmp(name, etcd.name) == 0) return &etcd;
    die("'%s' is not zookeeper, redis or etcd", name);
}

static const char *parse_options(struct load *load, int argc, char **argv) {
    const char *operation = NULL;
    for (int key; (key = getopt_long(argc, argv, "", options, NULL)) != -1;) {
        switch (key) {
        case OPERATION: operation = optarg; break;
        case PROTOCOL: load->protocol = protocol_named(optarg); break;
        case HOST: load->host = optarg; break;
        case PORT: take_ports(load); break;
        case DIRECTORY: load->directory = optarg; break;
        case CONNECTIONS: load->connections = (unsigned)number(1, 99999); break;
        case OUTSTANDING: load->outstanding = (unsigned)number(1, 9999); break;
        case VALUE: load->value = (unsigned)number(1, 10000); break;
        case SECONDS: load->seconds = real(); break;
        case WARM: load->warm = real(); break;
        case REQUESTS: load->requests = number(1, UINT32_MAX); break;
        case KEEP: load->keep = true; break;
        case VICTIM: load->victim = (int)number(1, INT32_MAX); break;
        case SIGNAL: load->ending = (int)number(1, 64); break;
        case HELP: fputs(help, stdout); exit(0);
        default: exit(2);
        }
    }
    if (!operation || optind != argc) {
        fputs(help, stderr);
        exit(2);
    }
    return operation;
}

/* ---- What can be asked for ---- */

static void report(const struct load *load, const char *operation) {
    double taken = (double)(load->end - load->start) / 1e9;
    printf("{\"operation\": \"%s\", \"protocol\": \"%s\", \"connections\": %u, "
           "\"outstanding\": %u, \"seconds\": %.3f, \"operations\": %" PRIu64
           ", \"per_second\": %.1f, \"p50_us\": %.1f, \"p99_us\": %.1f, \"p999_us\": %.1f, "
           "\"max_us\": %.1f, "
           "\"errors\": %" PRIu64 ", \"own_cpu\": %.2f}\n",
           operation, load->protocol->name, load->connections, load->outstanding, taken, load->done,
           taken > 0 ? (double)load->done / taken : 0, latencies_quantile(&load->latencies, 0.5),
           latencies_quantile(&load->latencies, 0.99), latencies_quantile(&load->latencies, 0.999),
           (double)load->latencies.max / 1e3, load->errors, load->own_cpu);
    fflush(stdout);
}

static void run_idle(struct load *load) {
    char byte;
    load->start = clock_ns();
    open_connections(load, load->connections);
    load->end = clock_ns();
    load->done = load->opened;
    report(load, "idle");
    while (read(STDIN_FILENO, &byte, 1) > 0) continue;
    close_connections(load);
}

static void run_answer(struct load *load) {
    load->start = clock_ns();
    await_server(load);
    load->end = clock_ns();
    load->done = 1;
    report(load, "answer");
}

static void choose_operation(struct load *load, const char *name) {
    static const struct operation *const operations[] = {
        &zookeeper_get,  &zookeeper_set,       &zookeeper_create,
        &zookeeper_lock, &zookeeper_contended, &zookeeper_watchers,
        &redis_get,      &redis_set,           &etcd_set,
        &etcd_contended,
    };
    for (size_t i = 0; !load->operation && i < sizeof operations / sizeof *operations; i++)
        if (operations[i]->protocol == load->protocol && strcmp(operations[i]->name, name) == 0)
            load->operation = operations[i];
    if (!load->operation) die("'%s' is no operation of %s", name, load->protocol->name);
}

static void run_operation(struct load *load, const char *name) {
    if (!load->operation) choose_operation(load, name);
    open_connections(load, load->connections + load->operation->directed);
    if (load->operation->prepare) load->operation->prepare(load);
    run_cycles(load);
    if (load->operation->finish) load->operation->finish(load);
    close_connections(load);
    report(load, name);
}

static void run_ping_pong(struct load *load) {
    load->operation = &ping_pong;
    load->protocol = ping_pong.protocol;
    load->ports[0] = start_echo();
    load->port_count = 1;
    load->connections = load->outstanding = 1;
    run_operation(load, ping_pong.name);
}

int main(int argc, char **argv) {
    struct load load = {.host = "127.0.0.1",
                        .directory = ".",
                        .ports = {2181},
                        .port_count = 1,
                        .ending = SIGKILL,
                        .connections = 1,
                        .outstanding = 1,
                        .value = 100,
                        .seconds = 2,
                        .warm = 0.2,
                        .protocol = &zookeeper};
    const char *operation = parse_options(&load, argc, argv);
    load.data = malloc(load.value);
    if (!load.data) die("out of memory");
    memset(load.data, 'v', load.value);

    if (strcmp(operation, "idle") == 0) {
        run_idle(&load);
    } else if (strcmp(operation, "answer") == 0) {
        run_answer(&load);
    } else if (strcmp(operation, "fail-over") == 0 || strcmp(operation, "gap") == 0) {
        choose_operation(&load, "set");
        run_fail_over(&load, *operation == 'f');
        report(&load, operation);
    } else if (strcmp(operation, "ping-pong") == 0) {
        run_ping_pong(&load);
    } else if (strcmp(operation, "overwrite") == 0 || strcmp(operation, "append") == 0) {
        write_records(&load, *operation == 'o');
        report(&load, operation);
    } else {
        run_operation(&load, operation);
    }
    return load.errors != 0;
}
