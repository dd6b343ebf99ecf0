# Conclave.  `make run` and `make test` are all you need; `make help` lists the rest.
VERSION := 0.1.0

# What the build, and what the tests and benchmarks need beyond it: Debian 12 packages.
BUILD_PACKAGES := gcc libc6-dev libjansson-dev libmicrohttpd-dev libssl-dev libsystemd-dev libuv1-dev libxxhash-dev libzstd-dev zlib1g-dev
BENCH_PACKAGES := default-jre-headless etcd-server g++ jq libsimgrid-dev libslf4j-java redis-server spin time zookeeper
FUZZ_PACKAGES  := afl++ clang libclang-rt-14-dev
TEST_PACKAGES  := binutils clang-format curl git help2man iproute2 jq libcmocka-dev libxml2-utils
# Real clients, and the real server to compare with.
TEST_PACKAGES  += default-jre-headless libcommons-cli-java libnetty-java libslf4j-java libzookeeper-java \
                  libzookeeper-mt-dev openssl python3-kazoo strace zookeeper \
                  $(if $(shell command -v npm),,nodejs npm)

B       ?= build
CC      := gcc
CFLAGS  ?= -O3 -g
# Whole-program optimization for the program itself; tests and mutants link the plain half of the objects.
LTO     ?= -flto=2 -ffat-lto-objects
ALL_CFLAGS := -std=gnu17 -Wall -Wextra -Werror -Wshadow -Wstrict-prototypes -Wno-format-truncation \
              -Isrc -D_GNU_SOURCE -DCONCLAVE_VERSION='"$(VERSION)"' -pthread $(CFLAGS) $(SANITIZE)
LDLIBS  := -ljansson -lm -lmicrohttpd -lssl -lcrypto -lsystemd -luv -lz -lzstd -pthread

SOURCES := $(sort $(wildcard src/*/*.c))
OBJECTS := $(SOURCES:src/%.c=$(B)/obj/%.o) $(B)/obj/cli/explanations.o
EXPLAINED := $(sort $(wildcard src/mutex/*.c src/election/*.c)) $(sort $(wildcard scenarios/*.scenario))
LIBRARY := $(filter-out $(B)/obj/cli/%,$(OBJECTS))
UNIT_TESTS := $(patsubst tests/unit/%.c,$(B)/tests/%,$(sort $(wildcard tests/unit/*.c)))
MANUALS := $(B)/man/conclave.1 $(patsubst src/cli/cmd_%.c,$(B)/man/conclave-%.1,\
             $(sort $(wildcard src/cli/cmd_*.c)))

.PHONY: libraries world-libraries mutants simulate all run tour fuzz afl test asan ubsan tsan bench man format clean help deps test-deps install build-tests
.DELETE_ON_ERROR:

all: deps $(B)/conclave

help:
	@echo "make run      a server on 127.0.0.1:2181, with its data in $(B)/data"
	@echo "make tour     the laboratory: a lock, its verdict and its diagram"
	@echo "make test     build everything and run all tests"
	@echo "make mutants  small deliberate faults, all of which the tests must notice"
	@echo "make asan     the same tests with the address sanitizer; make ubsan: undefined behaviour;"
	@echo "              make tsan: the checker's threads"
	@echo "make fuzz     every parser against random bytes, a minute each"
	@echo "make simulate ensembles in simulated worlds with faults, until one of them fails"
	@echo "make bench    speed, as a table"
	@echo "make man      the manual pages, into $(B)/man"
	@echo "make format   lay the sources out with clang-format"
	@echo "make install  PREFIX=/usr/local"

# ---- Packages ----
# $(call install,PACKAGES): installs those that are missing, as root or through sudo.
define install
@missing=; for p in $(1); do dpkg-query -W -f='$${Status}' $$p 2>/dev/null | grep -q 'ok installed' \
    || missing="$$missing $$p"; done; \
if [ -n "$$missing" ]; then \
    echo "Installing:$$missing"; \
    if [ $$(id -u) -eq 0 ]; then run=; elif command -v sudo >/dev/null; then run=sudo; \
    else echo "Please install these packages first:$$missing" >&2; exit 1; fi; \
    $$run apt-get update -qq && \
    $$run env DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends $$missing \
        >/dev/null; \
fi
endef

deps:
	$(call install,$(BUILD_PACKAGES))

test-deps: deps
	$(call install,$(TEST_PACKAGES))

# ---- Building ----
$(B)/conclave: $(OBJECTS)
	@echo "  LINK  $@"
	@$(CC) $(ALL_CFLAGS) $(LTO) -o $@ $^ $(LDLIBS)

$(B)/obj/%.o: src/%.c | deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) $(LTO) -MMD -MP -c -o $@ $<

# The texts of `conclave explain` are the sources' own.
$(B)/obj/cli/explanations.c: scripts/explanations.awk $(EXPLAINED) | deps
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/explanations.awk $(EXPLAINED) >$@

$(B)/obj/cli/explanations.o: $(B)/obj/cli/explanations.c | deps
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

$(B)/tests/%: tests/unit/%.c $(LIBRARY) | test-deps
	@mkdir -p $(@D)
	@echo "  TEST  $@"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -MF $@.d -o $@ $< $(LIBRARY) -lcmocka $(LDLIBS)

# The whole server in a simulated world: its own objects, with libuv and parts of the system replaced.
WORLD := $(patsubst tests/world/%.c,$(B)/world/%.o,$(sort $(wildcard tests/world/*.c)))
WORLD_WRAPS := open openat close closedir pwritev pwrite write ftruncate posix_fallocate fsync fdatasync renameat unlinkat \
               clock_gettime getrandom _exit fork waitpid flock server_say commit_expire commit_apply
comma := ,
WORLD_LDFLAGS := -fno-lto $(addprefix -Wl$(comma)--wrap=,$(WORLD_WRAPS)) $(filter-out -luv,$(LDLIBS))

$(B)/world/%.o: tests/world/%.c | deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/conclave-simulate: $(WORLD) $(LIBRARY)
	@echo "  LINK  $@"
	@$(CC) $(ALL_CFLAGS) -o $@ $^ $(WORLD_LDFLAGS)

-include $(OBJECTS:.o=.d) $(UNIT_TESTS:=.d) $(WORLD:.o=.d)

# ---- Doing ----
run: all
	@$(B)/conclave serve --data $(B)/data

tour: all
	@./scripts/tour $(B)/conclave

build-tests: test-deps $(B)/conclave $(B)/conclave-simulate $(UNIT_TESTS)

test: build-tests man
	@B=$(B) SANITIZED=$(SANITIZED) ./tests/run $(T)

# Every slip of tests/mutants, where `make test` tries some.
mutants: build-tests
	@B=$(B) ./tests/run mutants

asan:
	@$(MAKE) B=build-asan CFLAGS="-O1 -g" LTO= SANITIZE="-fsanitize=address -fno-omit-frame-pointer" SANITIZED=1 test

ubsan:
	@$(MAKE) B=build-ubsan CFLAGS="-O1 -g" LTO= \
	    SANITIZE="-fsanitize=undefined -fno-sanitize-recover=all" SANITIZED=1 test

# The threads of the model checker; the sanitizer wants addresses where it expects them.
tsan:
	@setarch $$(uname -m) -R $(MAKE) B=build-tsan CFLAGS="-O1 -g" LTO= SANITIZE="-fsanitize=thread" SANITIZED=1 \
	    T="check" test

# Each parser for a minute (FUZZ_SECONDS), from the corpus in tests/fuzz/corpus; `make fuzz F=log` for one.  `make fuzz` is
# libFuzzer's way, `make afl` AFL++'s.
FUZZ_SECONDS ?= 60
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_$(if $(F),$(F),*).c)))
FUZZ_SOURCES := $(wildcard src/base/*.c src/zk/*.c src/tree/*.c src/raft/*.c src/store/*.c src/server/settings*.c \
                src/server/zoo_cfg.c)
FUZZ_CFLAGS := -std=gnu17 -O1 -g -Isrc -D_GNU_SOURCE -DCONCLAVE_VERSION='"$(VERSION)"' -fno-omit-frame-pointer \
               -fno-sanitize-recover=all

fuzz: $(FUZZERS:%=fuzz-%)
afl: $(FUZZERS:%=afl-%)

fuzz-%: deps
	$(call install,$(FUZZ_PACKAGES))
	@mkdir -p $(B)/fuzz/$*
	@clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -o $(B)/fuzz/fuzz_$* tests/fuzz/fuzz_$*.c $(FUZZ_SOURCES) $(LDLIBS)
	@$(B)/fuzz/fuzz_$* -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 $(B)/fuzz/$* tests/fuzz/corpus/$*

afl-%: deps
	$(call install,$(FUZZ_PACKAGES))
	@mkdir -p $(B)/fuzz
	@AFL_QUIET=1 afl-cc $(FUZZ_CFLAGS) -fsanitize=undefined -DSTANDALONE -o $(B)/fuzz/afl_$* tests/fuzz/fuzz_$*.c \
	    tests/fuzz/standalone.c $(FUZZ_SOURCES) $(LDLIBS)
	@AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 afl-fuzz -V $(FUZZ_SECONDS) \
	    -i tests/fuzz/corpus/$* -o $(B)/fuzz/afl-$* -- $(B)/fuzz/afl_$* | tail -3
	@! ls $(B)/fuzz/afl-$*/default/crashes/id* 2>/dev/null

bench: all
	$(call install,$(BENCH_PACKAGES))
	@./bench/run $(B)/conclave
	@./bench/check $(B)/conclave
	@./bench/serve $(B)/conclave
	@./bench/ensemble $(B)/conclave

# Simulated worlds without end, until a seed fails; SEEDS=5001-6000 for some.
simulate: deps $(B)/conclave-simulate
	@$(B)/conclave-simulate --seeds $(or $(SEEDS),1-1000000000) --jobs $$(nproc) --stop --coverage

# For the tests, which link mutants of their own.
libraries:
	@echo $(LDLIBS)

world-libraries:
	@echo $(WORLD_LDFLAGS)

# ---- Manual pages: from --help, which is their one source ----
man: test-deps $(MANUALS)

$(B)/man/conclave.1: $(B)/conclave | test-deps
	@mkdir -p $(@D)
	@echo "  MAN   $@"
	@help2man --no-info --name "locks and leaders for distributed programs" -o $@ $<

$(B)/man/conclave-%.1: $(B)/conclave | test-deps
	@mkdir -p $(@D)
	@echo "  MAN   $@"
	@help2man --no-info --name "$$($< $* --summary)" --version-string "conclave $(VERSION)" \
	    -o $@ "$< $*"

format: test-deps
	clang-format -i $$(git ls-files '*.c' '*.h')

PREFIX ?= /usr/local
install: all man
	install -D -m 755 $(B)/conclave $(DESTDIR)$(PREFIX)/bin/conclave
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/conclave/scenarios
	install -m 644 $(MANUALS) $(DESTDIR)$(PREFIX)/share/man/man1
	install -d $(DESTDIR)$(PREFIX)/lib/systemd/system
	sed 's|@PREFIX@|$(PREFIX)|' systemd/conclave.service >$(DESTDIR)$(PREFIX)/lib/systemd/system/conclave.service
	install -m 644 scenarios/*.scenario $(DESTDIR)$(PREFIX)/share/conclave/scenarios

clean:
	rm -rf build build-asan build-ubsan build-tsan
