# Conclave.  The lines that begin with ## are what `make help` prints.
#
## Every day:
##   make            builds the program, build/conclave, and names the packages that it needs
##   make run        serves clients on 127.0.0.1:2181, with the data in build/data
##   make tour       shows the laboratory in seven steps: a lock, an election, a check, what breaks, and why; L=pt in Portuguese
##   make museum     builds programs with faults that were published, and shows how they are found; E=NAME for one
##   make test       builds everything and runs all tests; T="raft tls" for some suites, T=ensemble/roles for one test
##   make lint       builds with gcc and clang, and runs shellcheck and clang-tidy
##   make format     lays the sources out with clang-format
## Before a release:
##   make soak       does all of these up to the fuzzers, and the long forms of tests; S="world lint" for some parts
##   make stress     runs the tests of processes beside programs that keep the machine busy
##   make slow-disk  runs those tests with syncs that take long; SYNC_MS=40
##   make mutants    makes small deliberate faults, all of which the tests must notice; M='part of a name' for some
##   make mutants-check   names, in seconds, those that do not apply any more
##   make sanitize   runs the tests that matter for it with the address and undefined behaviour sanitizers
##   make tsan       runs the model checker's tests with the thread sanitizer
##   make cross      tests for the other processor (x86-64 or aarch64) what needs no library, in an emulator
##   make musl       tests the same with musl as the C library
##   make fuzz       feeds each parser random bytes with libFuzzer; FUZZ_SECONDS=60, F=log for one
##   make afl        does the same with AFL++
##   make simulate   runs ensembles in simulated worlds with faults until one fails; SEEDS=1-1000 for some
##   make screenshots   draws the pages of the laboratory and of a server: all views in build/screenshots, some for README.md in docs/pictures
##   make site       writes the laboratory's page as one file, build/site/index.html, for any web server or none
##   make bench      measures speed, and prints it as a table
## For editors, and to install:
##   make compile_commands.json   tells clangd and other tools how each file is compiled
##   make man        writes the manual pages to build/man
##   make library    builds libconclave, the client library, as build/libconclave.so and .a
##   make install    installs below PREFIX (/usr/local), or below DESTDIR if that is given
##   make deb        builds a Debian package; make test-deb installs it in a minimal system and uses it
##   make clean      removes all that was built
## CC, CPPFLAGS, CFLAGS, LDFLAGS, LTO and WERROR are taken from the command line or the environment.
## `make`, `make man` and `make install` name the packages that are missing; the others install them.
VERSION := 0.1.0
MAKEFLAGS += --no-builtin-rules

ifeq ($(origin CC),default)
CC      := gcc
endif
B       ?= build
CFLAGS  ?= -O3 -g
PREFIX  ?= /usr/local
WERROR  ?= -Werror

# ---- Packages: Debian 12's ----
BUILD_PACKAGES := $(filter gcc clang,$(CC)) libc6-dev libedit-dev libjansson-dev libmicrohttpd-dev libssl-dev libuv1-dev libxxhash-dev libzstd-dev zlib1g-dev
# The laboratory for a page; without them `conclave lab` has none to show.
BUILD_PACKAGES += clang-14 libclang-rt-14-dev-wasm32 lld-14 wasi-libc
BENCH_PACKAGES := chromium chromium-driver default-jre-headless etcd-client etcd-server g++ jq libsimgrid-dev libslf4j-java python3-kazoo redis-server spin time zookeeper
FUZZ_PACKAGES  := clang libclang-rt-14-dev
LINT_PACKAGES  := clang clang-tidy gcc libcmocka-dev libzookeeper-mt-dev shellcheck
MAN_PACKAGES   := help2man
TEST_PACKAGES  := binutils chromium chromium-driver clang-format curl gcc git iproute2 jq libxml2-utils prometheus redis-server systemd
# Real clients, and the real server to compare with.
TEST_PACKAGES  += default-jre-headless libcommons-cli-java libcurator-recipes-java libnetty-java librhino-java libslf4j-java \
                  libzookeeper-java libzookeeper-mt-dev openssl python3-kazoo strace zookeeper \
                  $(if $(shell command -v npm),,nodejs npm)

# ---- Flags ----
# $(call compiler_has,FLAGS): the flags, if the compiler knows them.
compiler_has = $(shell $(CC) -Werror $(1) -x c -c -o /dev/null /dev/null >/dev/null 2>&1 && echo "$(1)")

# Whole-program optimization for the program itself; tests and mutants link the plain half of the objects.  It takes as long as
# compiling, so the program is linked plainly, too, when only tests are made; `make all test` tests what `make` makes.
ifeq ($(origin LTO),undefined)
LTO     := $(call compiler_has,-flto=2 -ffat-lto-objects)
LINK    := $(if $(filter-out build-tests man museum mutants slow-disk stress test,$(or $(MAKECMDGOALS),all)),$(LTO))
else
LINK    := $(LTO)
endif
# How programs of tests are linked, of which there are many.
PLAIN_LINK := -fno-lto $(if $(shell $(CC) -fuse-ld=gold -Wl,--version 2>/dev/null),-fuse-ld=gold)
# Each compiler has a warning that is none: gcc's of text that is cut on purpose, clang's of inline functions that a macro of
# wire/zk/codec.h makes and nobody calls.
WARNINGS := -Wall -Wextra $(WERROR) -Wshadow -Wstrict-prototypes \
            $(if $(findstring clang,$(shell $(CC) --version 2>&1)),-Wno-unused-function,-Wno-format-truncation)
# No fused multiply-add, which some processors have and others not: a seed means the same run everywhere.
LANGUAGE := -std=gnu17 -ffp-contract=off -D_GNU_SOURCE -DCV_BUILT_IN
ALL_CFLAGS := $(LANGUAGE) $(WARNINGS) \
              -Isrc -Iinclude -DCONCLAVE_VERSION='"$(VERSION)"' -pthread $(CPPFLAGS) $(CFLAGS) $(SANITIZE)
LDLIBS  := -ledit -ljansson -lm -lssl -lcrypto -luv -lz -lzstd -pthread

# ---- Files ----
SOURCES := $(sort $(wildcard src/*/*.c src/*/*/*.c))
OBJECTS := $(SOURCES:src/%.c=$(B)/obj/%.o) $(B)/obj/algorithms/roll.o $(B)/obj/cli/explanations.o $(B)/obj/cli/skeletons.o \
           $(B)/obj/cli/exhibits.o $(B)/obj/cli/pages.o $(B)/obj/service/admin/pages.o $(B)/obj/language/portuguese.o
ALGORITHMS := $(sort $(wildcard src/algorithms/mutex/*.c)) $(sort $(wildcard src/algorithms/election/*.c))
SKELETONS := examples/own/lock.c examples/own/election.c examples/own/Makefile
EXHIBITS := $(sort $(wildcard museum/*.exhibit))
EXPLAINED := $(ALGORITHMS) $(sort $(wildcard scenarios/*.scenario)) $(sort $(wildcard po/pt/explain/*.txt))
TRANSLATIONS := $(sort $(wildcard po/pt/*.po))
LIBRARY := $(filter-out $(B)/obj/cli/%,$(OBJECTS))
UNIT_SOURCES := $(sort $(wildcard tests/unit/*.c))
UNIT_OBJECTS := $(UNIT_SOURCES:tests/unit/%.c=$(B)/unit/%.o)
UNIT_TESTS := $(UNIT_SOURCES:tests/unit/%.c=$(B)/tests/%)
WORLD := $(patsubst tests/world/%.c,$(B)/world/%.o,$(sort $(wildcard tests/world/*.c)))
MANUALS := $(B)/man/conclave.1 $(patsubst src/cli/cmd_%.c,$(B)/man/conclave-%.1,\
             $(sort $(wildcard src/cli/cmd_*.c)))

.PHONY: all afl bench build-tests clean cost-libraries cross deps force format fuzz fuzz-deps help install libraries lint lint-builds lint-clang \
        lint-deps lint-gcc lint-shell lint-tidy man man-deps museum museum-deps musl mutants mutants-check portable-tests run sanitize screenshots simulate site slow-disk soak stress test \
        test-deps tour tsan unit-deps world-libraries
.DELETE_ON_ERROR:
.SECONDARY: $(UNIT_OBJECTS)

all: deps $(B)/conclave library

help:
	@sed -n 's/^## //p' $(filter-out %.d,$(MAKEFILE_LIST))

# ---- Which packages are missing ----
# These targets install what they need, and whatever they are made of does too; the others only name it.
run screenshots site tour test build-tests museum mutants slow-disk stress bench simulate format fuzz afl lint lint-builds cross musl: IF_MISSING := --install

# $(call install,PACKAGES), for targets of packaging/package.mk.
install = @./scripts/packages --install $(1)

deps:
	@./scripts/packages $(IF_MISSING) $(BUILD_PACKAGES)

unit-deps: deps
	@./scripts/packages $(IF_MISSING) libcmocka-dev

test-deps: unit-deps man-deps
	@./scripts/packages $(IF_MISSING) $(TEST_PACKAGES)

museum-deps: unit-deps
	@./scripts/packages $(IF_MISSING) gcc jq

man-deps: deps
	@./scripts/packages $(IF_MISSING) $(MAN_PACKAGES)

fuzz-deps: deps
	@./scripts/packages $(IF_MISSING) $(FUZZ_PACKAGES)

lint-deps: deps
	@./scripts/packages $(IF_MISSING) $(LINT_PACKAGES)

# ---- Building ----
# $(B)/flags is written only when one of these has changed, and every object that they concern depends on it.
quoted = '$(subst ','\'',$(1))'
BUILD_FLAGS := CC=$(CC) CPPFLAGS=$(CPPFLAGS) CFLAGS=$(CFLAGS) LTO=$(LTO) SANITIZE=$(SANITIZE) WERROR=$(WERROR)

$(B)/flags: $(if $(subst <$(BUILD_FLAGS)>,,<$(file <$(B)/flags)>),force)
	@mkdir -p $(@D)
	@printf '%s\n' $(call quoted,$(BUILD_FLAGS)) >$@

$(B)/link: $(if $(subst <$(LINK)>,,<$(file <$(B)/link)>),force)
	@mkdir -p $(@D)
	@printf '%s\n' '$(LINK)' >$@

$(B)/conclave: $(OBJECTS) $(B)/link
	@echo "  LINK  $@"
	@$(CC) $(ALL_CFLAGS) $(or $(LINK),$(PLAIN_LINK)) $(LDFLAGS) -o $@ $(OBJECTS) $(LDLIBS)

$(B)/obj/%.o: src/%.c $(B)/flags | deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) $(LTO) -MMD -MP -c -o $@ $<

# The catalogue is what CV_ALGORITHM names in the sources; a file that comes or goes makes it anew.
$(B)/algorithms: $(if $(subst <$(ALGORITHMS)>,,<$(file <$(B)/algorithms)>),force)
	@mkdir -p $(@D)
	@echo $(ALGORITHMS) >$@

$(B)/obj/algorithms/roll.c: scripts/roll.awk $(ALGORITHMS) $(B)/algorithms
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/roll.awk $(ALGORITHMS) >$@

$(B)/obj/algorithms/roll.o: $(B)/obj/algorithms/roll.c $(B)/flags | deps
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# The texts of `conclave explain` are the sources' own.
$(B)/obj/cli/explanations.c: scripts/explanations.awk $(EXPLAINED) | deps
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/explanations.awk $(EXPLAINED) >$@

# The laboratory in Portuguese.
$(B)/obj/language/portuguese.c: scripts/messages.awk $(TRANSLATIONS)
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/messages.awk $(TRANSLATIONS) >$@

# What `conclave new` writes.
$(B)/obj/cli/skeletons.c: scripts/skeletons.awk $(SKELETONS)
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/skeletons.awk $(SKELETONS) >$@

# What `conclave museum` shows; a file that comes or goes makes it anew.
$(B)/exhibits: $(if $(subst <$(EXHIBITS)>,,<$(file <$(B)/exhibits)>),force)
	@mkdir -p $(@D)
	@echo $(EXHIBITS) >$@

$(B)/obj/cli/exhibits.c: scripts/museum.awk $(EXHIBITS) $(B)/exhibits
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/museum.awk $(EXHIBITS) >$@

$(B)/obj/cli/explanations.o $(B)/obj/cli/skeletons.o $(B)/obj/cli/exhibits.o $(B)/obj/cli/pages.o $(B)/obj/service/admin/pages.o \
$(B)/obj/language/portuguese.o: %.o: %.c $(B)/flags | deps
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -c -o $@ $<

# ---- The laboratory in a page ----
# Its commands as a WebAssembly module.  What a browser lacks is in web/module.
LAB_SOURCES := $(sort $(addprefix src/base/,assert.c distribution.c parse.c spelling.c summary.c) \
               $(filter-out src/process/contract_ends.c,$(wildcard src/process/*.c)) \
               $(wildcard src/language/*.c src/raft/*.c src/algorithms/*/*.c src/lab/sim/*.c src/lab/check/*.c \
               src/lab/experiments/*.c web/module/*.c) $(filter-out src/algorithms/module.c,$(wildcard src/algorithms/*.c)) \
               $(filter-out src/lab/judge/history%,$(wildcard src/lab/judge/*.c)) \
               $(addprefix src/cli/,cli.c escape.c options.c report.c step.c check_report.c check_walk.c compare_elections.c compare_load.c own.c \
               exercise_answer.c exercise_judge.c exercise_read.c $(addprefix cmd_,exercise.c sim.c check.c compare.c odds.c timeout.c list.c explain.c museum.c)))
LAB_MADE := algorithms/roll cli/explanations cli/exhibits cli/skeletons language/portuguese lab/files
LAB_OBJECTS := $(LAB_SOURCES:%.c=$(B)/module/%.o) $(LAB_MADE:%=$(B)/module/made/%.o)
WASM_CC ?= clang-14
WASM := --target=wasm32-wasi
LAB_CFLAGS := $(LANGUAGE) -Oz -Wall -Wextra $(WERROR) -Wno-unused-function -Iweb/module/include -I$(B)/module/include -Isrc -Iinclude \
              -D_WASI_EMULATED_SIGNAL -DCONCLAVE_VERSION='"$(VERSION)"'
LAB_COMPILE = $(WASM_CC) $(WASM) $(LAB_CFLAGS) -MMD -MP -c -o $@ $<

.SECONDARY: $(LAB_OBJECTS)

# It defines what the compiler would call for itself.
$(B)/module/web/module/long_math.o: LAB_CFLAGS += -fno-builtin

# Not a prerequisite: on a fresh machine it comes with the packages.
$(B)/module/include/xxhash.h: | deps
	@mkdir -p $(@D)
	@cp /usr/include/xxhash.h $@

$(B)/module/%.o: %.c $(B)/module/include/xxhash.h | deps
	@mkdir -p $(@D)
	@echo "  WASM  $<"
	@$(LAB_COMPILE)

$(B)/module/made/%.o: $(B)/obj/%.c | deps
	@mkdir -p $(@D)
	@echo "  WASM  $<"
	@$(LAB_COMPILE)

# The module carries the exercises with it, in a section that the page reads.
EXERCISES := $(sort $(wildcard exercises/*))
$(B)/module/files: $(EXERCISES)
	@mkdir -p $(@D)
	@for file in $(EXERCISES); do echo "$$file $$(wc -c <$$file)"; cat $$file; done >$@

$(B)/obj/lab/files.c: $(B)/module/files
	@mkdir -p $(@D)
	@printf '%s\n' '__asm__(".section .custom_section.files,\"\",@");' '__asm__(".incbin \"$<\"");' >$@

$(B)/lab/lab.wasm: $(LAB_OBJECTS)
	@mkdir -p $(@D)
	@echo "  LINK  $@"
	@$(WASM_CC) $(WASM) -Wl,--gc-sections,--strip-all,-z,stack-size=1048576 -o $@ $^ -lc-printscan-long-double

-include $(LAB_OBJECTS:.o=.d)

# The scenarios, for the page to open; the sources; their names in Portuguese.
$(B)/lab/library.js: scripts/library.awk po/pt/texts.po $(sort $(wildcard scenarios/*.scenario)) $(sort $(wildcard src/algorithms/mutex/*.c src/algorithms/election/*.c))
	@mkdir -p $(@D)
	@echo "  AWK   $@"
	@LC_ALL=C awk -f scripts/library.awk $(filter %.scenario,$^) $(filter %.c,$^) po/pt/texts.po >$@

# The pages are a part of the program; with an empty WASM_CC that of the laboratory is left out, and `conclave lab` says so.
web_files = $(sort $(foreach folder,$(1) web/shared,$(wildcard $(addprefix $(folder)/*.,html css js))))
PAGES := $(call web_files,web/lab) $(B)/lab/library.js $(B)/lab/lab.wasm.gz
SERVER_PAGES := $(call web_files,web/server)
$(B)/lab/lab.wasm.gz: $(B)/lab/lab.wasm
	@gzip -9n <$< >$@

$(B)/pages: $(if $(subst <$(PAGES) $(SERVER_PAGES)>,,<$(file <$(B)/pages)>),force)
	@mkdir -p $(@D)
	@echo $(PAGES) $(SERVER_PAGES) >$@

# $(call write_pages,TABLE,FILES)
define write_pages
@mkdir -p $(@D)
@echo "  AWK   $@"
@LC_ALL=C awk -f scripts/pages.awk -v table=$(1) $(2) >$@
endef

$(B)/obj/cli/pages.c: scripts/pages.awk $(B)/pages $(if $(WASM_CC),$(PAGES))
	$(call write_pages,lab_pages,$(if $(WASM_CC),$(PAGES)))

$(B)/obj/service/admin/pages.c: scripts/pages.awk $(B)/pages $(SERVER_PAGES)
	$(call write_pages,server_pages,$(SERVER_PAGES))

# The page in one file, which a browser can open from a disk.
site: deps $(B)/site/index.html
$(B)/site/index.html: scripts/site web/site/loader.js $(PAGES)
	@mkdir -p $(@D)
	@echo "  SITE  $@"
	@scripts/site web/lab/index.html $(PAGES) >$@

# Every view, at two widths, light and dark; those that README.md shows are kept.
screenshots: test-deps $(B)/conclave
	@/usr/bin/python3 tests/browser/pictures.py $(B)/conclave $(B)/screenshots
	@/usr/bin/python3 tests/browser/server_pictures.py $(B)/conclave $(B)/screenshots
	@mkdir -p docs/pictures
	@cp $(addprefix $(B)/screenshots/,$(addsuffix .png,run election-dark check server-ensemble server-locks-dark)) docs/pictures

# ---- Dates ----
# The date of the build is SOURCE_DATE_EPOCH, or else that of the last commit, or else the time of the first build here.
# $(B)/version changes only when the version or the date does, and only the objects that contain one of them depend on it.
ifndef SOURCE_DATE_EPOCH
SOURCE_DATE_EPOCH := $(shell { test -e .git && git log -1 --format=%ct 2>/dev/null; } || \
                       cut -d ' ' -f 2 $(B)/version 2>/dev/null || date +%s)
endif
DATED := $(B)/obj/service/admin/version.o
BUILT = -DCONCLAVE_BUILT='"$(shell date -u -d @$(SOURCE_DATE_EPOCH) '+%m/%d/%Y %H:%M UTC')"'

$(B)/version: force
	@mkdir -p $(@D)
	@echo '$(VERSION) $(SOURCE_DATE_EPOCH)' | cmp -s - $@ || echo '$(VERSION) $(SOURCE_DATE_EPOCH)' >$@

$(DATED) $(B)/obj/cli/main.o: $(B)/version
$(DATED): ALL_CFLAGS += $(BUILT)

# The tests need not be linked again for another date.
$(B)/tests/%: $(B)/unit/%.o $(filter-out $(DATED),$(LIBRARY)) | unit-deps $(DATED)
	@mkdir -p $(@D)
	@echo "  TEST  $@"
	@$(CC) $(ALL_CFLAGS) $(PLAIN_LINK) $(LDFLAGS) -o $@ $< $(LIBRARY) -lcmocka $(LDLIBS)

# The tests themselves need no speed, and take half the time to compile without it.
$(B)/unit/%.o: tests/unit/%.c $(B)/flags | unit-deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS:-O3=-O1) -MMD -MP -c -o $@ $<

# The whole server in a simulated world: its own objects, with libuv and parts of the system replaced.
WORLD_WRAPS := open openat close closedir pread read pwritev pwrite write ftruncate posix_fallocate fsync fdatasync renameat unlinkat \
               clock_gettime getrandom _exit fork waitpid flock logger_write propose_expiry apply_entry peers_send sending_read net_flow \
               mend_leader_confirmed salvage_cut memory_limit
comma := ,
WORLD_LDFLAGS := -fno-lto $(addprefix -Wl$(comma)--wrap=,$(WORLD_WRAPS)) $(filter-out -luv,$(LDLIBS))

$(B)/world/%.o: tests/world/%.c $(B)/flags | deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -MMD -MP -c -o $@ $<

# A fence and a peer need parts of libuv that the simulated one does not have.
SIMULATED := $(filter-out $(B)/obj/fence/% $(B)/obj/peer/% $(B)/obj/lab/peers/%,$(LIBRARY))
$(B)/conclave-simulate: $(WORLD) $(filter-out $(DATED),$(SIMULATED)) | $(DATED)
	@echo "  LINK  $@"
	@$(CC) $(ALL_CFLAGS) $(LDFLAGS) -o $@ $(WORLD) $(SIMULATED) $(WORLD_LDFLAGS)

# What requests cost: the server's part that clients talk to, without sockets and disk (tests/fuzz/fuzz_cost.c).  Steps are
# blocks of code as the compiler makes them here, whatever the flags of the program are.
COST_SOURCES := $(sort $(addprefix src/base/,assert.c arena.c table.c summary.c busy.c logger.c parse.c spelling.c) \
                $(wildcard src/wire/zk/*.c src/service/tree/*.c src/service/settings/*.c) \
                $(addprefix src/service/server/,accept.c apply.c connection.c cost.c crowd.c identity.c incoming.c outgoing.c propose.c request.c session.c watching.c))
COST_OBJECTS := $(COST_SOURCES:src/%.c=$(B)/cost/%.o)
COST_WRAPS := malloc calloc realloc strdup free clock_gettime getrandom request_answer __sanitizer_cov_trace_pc
COST_LDFLAGS := -fno-lto $(addprefix -Wl$(comma)--wrap=,$(COST_WRAPS)) -lcrypto -lm
COST_CFLAGS := $(LANGUAGE) -O1 -w -Isrc -Iinclude -DCONCLAVE_VERSION='"$(VERSION)"'

$(B)/cost/%.o: src/%.c | deps
	@mkdir -p $(@D)
	@echo "  CC    $< (cost)"
	@$(CC) $(COST_CFLAGS) -fsanitize-coverage=trace-pc -MMD -MP -c -o $@ $<

$(B)/cost/%.o: tests/fuzz/%.c | deps
	@mkdir -p $(@D)
	@echo "  CC    $< (cost)"
	@$(CC) $(COST_CFLAGS) -DSTANDALONE -MMD -MP -c -o $@ $<

$(B)/fuzz_cost: $(B)/cost/fuzz_cost.o $(B)/cost/standalone.o $(COST_OBJECTS)
	@echo "  LINK  $@"
	@$(CC) -o $@ $^ $(COST_LDFLAGS)

cost-libraries:
	@echo $(COST_LDFLAGS)

-include $(OBJECTS:.o=.d) $(UNIT_OBJECTS:.o=.d) $(WORLD:.o=.d) $(COST_OBJECTS:.o=.d) $(B)/cost/fuzz_cost.d

# ---- Running ----
run: all
	@$(B)/conclave serve --data $(B)/data

tour: all
	@./scripts/tour $(B)/conclave $(L)

build-tests: test-deps $(B)/conclave $(B)/conclave-simulate $(UNIT_TESTS) $(if $(SANITIZED),,$(B)/fuzz_cost) library examples

test: build-tests $(if $(SANITIZED),,man)
	@B=$(B) SANITIZED=$(SANITIZED) LONG=$(LONG) ./tests/run $(T)

soak:
	@B=$(B) ./scripts/soak $(S)

# A test may take longer on a busy machine, but does not fail there.  TESTS_EVERY=6 TESTS_FROM=5 leaves most out.
STRESSED_SUITES := =data =durability =ensemble =lock =members =partitions
stress: build-tests
	@./scripts/packages $(IF_MISSING) stress-ng
	@stress-ng --quiet --cpu 4 --io 2 --timeout 30m & hog=$$!; trap 'kill $$hog 2>/dev/null; wait' EXIT; \
	    B=$(B) ./tests/run $(or $(T),$(STRESSED_SUITES))

# The same for a disk: many of these tests are about what is durable, and when.
SLOW_SUITES := $(STRESSED_SUITES) =commands =elections =fence =hostile =limits =locks =operations =peers =recipes =records =tls =upgrade =words
slow-disk: build-tests
	@$(CC) -O2 -D_GNU_SOURCE -Wall -Wextra $(WERROR) -shared -fPIC -o $(B)/slow_disk.so tests/net/slow_disk.c
	@LD_PRELOAD=$(abspath $(B))/slow_disk.so SYNC_MS=$(or $(SYNC_MS),40) B=$(B) ./tests/run $(or $(T),$(SLOW_SUITES))

# What was published as a fault, in programs of its own, beside the three that exhibits run.
museum: museum-deps $(B)/conclave $(B)/conclave-simulate $(B)/tests/test_raft_sim
	@B=$(B) ./scripts/museum $(E)

# Every fault of tests/mutants, where `make test` tries some.
mutants: build-tests
	@B=$(B) ./tests/run =mutants

# Compiles nothing.
mutants-check:
	@./tests/mutants/resolved --check

# The unit tests, and the suites in which processes, files and connections come and go.  The others run the laboratory, whose
# code the unit tests reach, or ZooKeeper beside the server, which would take most of the time.
SANITIZED_SUITES := unit/ clients data durability ensemble errors hostile limits =lock members =peers tls words world
sanitize:
	@UBSAN_OPTIONS=print_stacktrace=1 $(MAKE) B=build-sanitize CFLAGS="-O1 -g" LTO= WASM_CC= \
	    SANITIZE="-fsanitize=address,undefined -fno-sanitize-recover=all -fno-omit-frame-pointer" SANITIZED=1 \
	    T="$(or $(T),$(SANITIZED_SUITES))" test

# The thread sanitizer wants addresses where it expects them.
tsan:
	@setarch $$(uname -m) -R $(MAKE) B=build-tsan CFLAGS="-O1 -g" LTO= WASM_CC= SANITIZE="-fsanitize=thread" SANITIZED=1 \
	    T="check unit/test_client unit/test_peer_api" test

bench: all
	@./scripts/packages $(IF_MISSING) $(BENCH_PACKAGES)
	@./bench/run $(B)/conclave
	@./bench/check $(B)/conclave
	@./bench/serve $(B)/conclave
	@./bench/library $(B)/conclave
	@./bench/peer $(B)/conclave
	@./bench/command $(B)/conclave
	@./bench/loop $(B)/conclave
	@./bench/page $(B)/conclave
	@./bench/server_page $(B)/conclave
	@./bench/ensemble $(B)/conclave

simulate: deps $(B)/conclave-simulate
	@$(B)/conclave-simulate --seeds $(or $(SEEDS),1-1000000000) --jobs $$(nproc) --stop --coverage

# For the tests, which link mutants of their own.
libraries:
	@echo $(LDLIBS)

world-libraries:
	@echo $(WORLD_LDFLAGS)

# ---- Fuzzing ----
# From the corpus in tests/fuzz/corpus; what is found goes to $(B)/fuzz.
FUZZ_SECONDS ?= 60
FUZZERS := $(patsubst tests/fuzz/fuzz_%.c,%,$(sort $(wildcard tests/fuzz/fuzz_$(if $(F),$(F),*).c)))
FUZZ_SOURCES := $(sort $(wildcard src/base/*.c src/wire/zk/*.c src/raft/*.c src/service/tree/*.c src/service/log/*.c \
                src/service/store/*.c src/service/settings/*.c src/service/steps/*.c src/service/ensemble/codec*.c src/client/reply.c \
                src/fence/resp.c src/fence/http.c))
FUZZ_OBJECTS := $(FUZZ_SOURCES:%.c=$(B)/fuzz/%.o)
FUZZ_CFLAGS := $(LANGUAGE) -O1 -g -Isrc -Iinclude -DCONCLAVE_VERSION='"$(VERSION)"' -fno-omit-frame-pointer \
               -fno-sanitize-recover=all

# A whole member, whose process the fuzzer does not let it end.
FUZZ_MEMBER_SOURCES := $(filter-out $(FUZZ_SOURCES),$(wildcard src/service/ensemble/*.c))
FUZZ_MEMBER_OBJECTS := $(FUZZ_MEMBER_SOURCES:%.c=$(B)/fuzz/%.o)
$(FUZZ_MEMBER_OBJECTS): FUZZ_CFLAGS += -D_exit=fuzz_exit
$(B)/fuzz/fuzz_member: $(FUZZ_MEMBER_OBJECTS)

# The one that counts blocks of code has no sanitizers, which would be counted too.
$(B)/fuzz/fuzz_cost: tests/fuzz/fuzz_cost.c tests/fuzz/fuzz_cost.h $(COST_SOURCES) | fuzz-deps
	@mkdir -p $(@D)
	@echo "  FUZZ  $@"
	@clang $(COST_CFLAGS) -g -fsanitize=fuzzer -fsanitize-coverage=trace-pc -o $@ $(filter %.c,$^) $(COST_LDFLAGS)

# Algorithms among peers, and what peers and servers have recorded.
FUZZ_PEER_SOURCES := $(sort $(wildcard src/language/*.c src/process/*.c src/algorithms/*.c src/algorithms/*/*.c src/lab/judge/*.c src/lab/sim/*.c \
                     src/lab/peers/*.c src/lab/servers/*.c) $(addprefix src/peer/,codec.c group.c record.c record_read.c)) $(B)/obj/algorithms/roll.c $(B)/obj/language/portuguese.c
FUZZ_PEER_OBJECTS := $(FUZZ_PEER_SOURCES:%.c=$(B)/fuzz/%.o)
$(B)/fuzz/fuzz_peer $(B)/fuzz/fuzz_record $(B)/fuzz/fuzz_steps: $(FUZZ_PEER_OBJECTS)

fuzz: $(FUZZERS:%=fuzz-%)
afl: $(patsubst %,afl-%,$(filter-out cost,$(FUZZERS)))

.SECONDARY: $(FUZZ_OBJECTS) $(FUZZ_MEMBER_OBJECTS) $(FUZZ_PEER_OBJECTS) $(FUZZERS:%=$(B)/fuzz/fuzz_%) $(FUZZERS:%=$(B)/fuzz/tests/fuzz/fuzz_%.o)

$(B)/fuzz/%.o: %.c | fuzz-deps
	@mkdir -p $(@D)
	@echo "  FUZZ  $<"
	@clang $(FUZZ_CFLAGS) -fsanitize=fuzzer-no-link,address,undefined -MMD -MP -c -o $@ $<

$(B)/fuzz/fuzz_%: $(B)/fuzz/tests/fuzz/fuzz_%.o $(FUZZ_OBJECTS)
	@echo "  LINK  $@"
	@clang $(FUZZ_CFLAGS) -fsanitize=fuzzer,address,undefined -o $@ $^ $(LDLIBS)

fuzz-%: $(B)/fuzz/fuzz_%
	@mkdir -p $(B)/fuzz/$*
	@$< $(FUZZ_FLAGS) -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=$(B)/fuzz/$*- $(B)/fuzz/$* tests/fuzz/corpus/$* \
	    >$(B)/fuzz/$*.log 2>&1 || { tail -60 $(B)/fuzz/$*.log; echo "The fuzzer of $* has found a fault; all that it said is in $(B)/fuzz/$*.log." >&2; exit 1; }
	@awk '/number_of_executed_units/ {print "ok      fuzz/$* (" $$2 " inputs, $(FUZZ_SECONDS) s)"}' $(B)/fuzz/$*.log

-include $(FUZZ_OBJECTS:.o=.d) $(FUZZ_MEMBER_OBJECTS:.o=.d) $(FUZZ_PEER_OBJECTS:.o=.d) $(FUZZERS:%=$(B)/fuzz/tests/fuzz/fuzz_%.d)

afl-%: fuzz-deps
	@./scripts/packages $(IF_MISSING) afl++
	@mkdir -p $(B)/fuzz
	@AFL_QUIET=1 afl-cc $(FUZZ_CFLAGS) -fsanitize=undefined -DSTANDALONE -o $(B)/fuzz/afl_$* tests/fuzz/fuzz_$*.c \
	    tests/fuzz/standalone.c $(FUZZ_SOURCES) $(if $(filter member,$*),$(FUZZ_MEMBER_SOURCES) -D_exit=fuzz_exit) $(if $(filter peer record steps,$*),$(FUZZ_PEER_SOURCES)) $(LDLIBS)
	@AFL_NO_UI=1 AFL_SKIP_CPUFREQ=1 AFL_I_DONT_CARE_ABOUT_MISSING_CRASHES=1 afl-fuzz -V $(FUZZ_SECONDS) \
	    -i tests/fuzz/corpus/$* -o $(B)/fuzz/afl-$* -- $(B)/fuzz/afl_$* | tail -3
	@! ls $(B)/fuzz/afl-$*/default/crashes/id* 2>/dev/null

# ---- Lint ----
# Each compiler has a build directory of its own.  clang-tidy reads a source again when its object was made anew.
lint: lint-gcc lint-tidy lint-shell

lint-gcc: lint-deps
	@$(MAKE) B=build-lint/gcc CC=gcc CFLAGS=-O1 LTO= WASM_CC= WERROR=-Werror lint-builds
lint-clang: lint-deps
	@$(MAKE) B=build-lint/clang CC=clang CFLAGS=-O1 LTO= WASM_CC= WERROR=-Werror lint-builds
lint-tidy: lint-clang
	@$(MAKE) B=build-lint/clang CC=clang CFLAGS=-O1 LTO= WASM_CC= WERROR=-Werror build-lint/clang/tidied

# What is compiled elsewhere than in this file: drivers of fuzzers, load generators, clients in C.
STRAYS := $(sort $(wildcard tests/fuzz/*.c tests/net/*.c tests/wire/*.c bench/*.c))
lint-builds: $(OBJECTS) $(UNIT_OBJECTS) $(WORLD) $(STRAYS:%.c=$(B)/stray/%.o)

$(B)/stray/%.o: %.c $(B)/flags | deps
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(ALL_CFLAGS) -DTHREADED -MMD -MP -c -o $@ $<

-include $(STRAYS:%.c=$(B)/stray/%.d)

# How far the analyzer goes: ten times as far takes ten times as long, and has found nothing more.  Characters are signed
# on one kind of processor and not on the other: it looks at them as signed on both.
ANALYZER := -Xclang -analyzer-config -Xclang max-nodes=20000
TIDIED := $(SOURCES:src/%.c=$(B)/tidy/%.ok)
$(B)/tidied: $(TIDIED)
	@touch $@

$(B)/tidy/%.ok: $(B)/obj/%.o .clang-tidy
	@mkdir -p $(@D)
	@echo "  TIDY  src/$*.c"
	@clang-tidy --quiet --warnings-as-errors='*' src/$*.c -- $(ALL_CFLAGS) -fsigned-char $(BUILT) $(ANALYZER) >$@.log 2>&1 || { cat $@.log; exit 1; }
	@touch $@

# SC2010 is off: what `ls` lists there are files that these scripts have named themselves.
lint-shell: lint-deps
	@echo "  SHELL"
	@shellcheck -x -S warning -e SC2010 -s bash $$(git ls-files 'tests/suites/*.sh' '*.bash'; git grep -lE '^#!.*\<(ba)?sh\>')

# How each file is compiled, for clangd and others.
COMMANDED := $(SOURCES) $(UNIT_SOURCES) $(sort $(wildcard tests/world/*.c)) $(STRAYS)
compile_commands.json: Makefile $(COMMANDED)
	@echo "  JSON  $@"
	@printf '%s\n' $(COMMANDED) | FLAGS=$(call quoted,$(CC) $(ALL_CFLAGS) $(BUILT)) DIRECTORY=$(call quoted,$(CURDIR)) awk ' \
	    function string(text) { gsub(/[\\"]/, "\\\\&", text); return "\"" text "\"" } \
	    { printf "%s{\"directory\": %s, \"file\": %s, \"command\": %s}", NR == 1 ? "[\n" : ",\n", \
	          string(ENVIRON["DIRECTORY"]), string($$0), string(ENVIRON["FLAGS"] " -c " $$0) } \
	    END { print "\n]" }' >$@

# ---- Another processor, another C library ----
# What needs no library, with its unit tests, which are compiled against tests/cross/cmocka.h.
OTHER := $(if $(filter aarch64,$(shell uname -m)),x86_64,aarch64)
QEMU := qemu-$(OTHER) -cpu max -L /usr/$(OTHER)-linux-gnu
CROSS_PACKAGES := gcc-$(subst _,-,$(OTHER))-linux-gnu libc6-dev-$(if $(filter x86_64,$(OTHER)),amd64,arm64)-cross libxxhash-dev qemu-user

cross:
	@./scripts/packages $(IF_MISSING) $(CROSS_PACKAGES)
	@$(MAKE) B=build-cross/$(OTHER) CC=$(OTHER)-linux-gnu-gcc AR=$(OTHER)-linux-gnu-ar CFLAGS=-O2 LTO= EMULATOR="$(QEMU)" LDFLAGS="-Wl,--wrap=mmap" LEFT_OUT="test_raft_sim test_lock_steps test_bounds" portable-tests

# Its renameat2 came later than Debian 12, and gcc's helper functions for atomics want glibc on aarch64.
MUSL_LACKS := src/service/log/% test_log test_log_damage test_log_model test_log_reader test_log_spare test_salvage test_vote test_window
musl:
	@./scripts/packages $(IF_MISSING) musl-tools libxxhash-dev
	@$(MAKE) B=build-cross/musl CC=musl-gcc CFLAGS="-O2 $(if $(filter aarch64,$(shell uname -m)),-mno-outline-atomics)" LTO= EMULATOR= LEFT_OUT="$(MUSL_LACKS)" portable-tests

# Left out are the files that include Jansson, libuv, OpenSSL, zlib or Zstandard, and the tests that need one of them.
# In an emulator test_raft_sim, test_lock_steps and test_bounds would take many minutes.
PORTABLE_SOURCES := $(filter-out src/lab/sim/trace_json.c src/service/log/snapshot.c $(LEFT_OUT),$(sort $(wildcard src/base/*.c src/language/*.c src/process/*.c \
                    src/algorithms/*.c src/algorithms/*/*.c src/raft/*.c src/recipe/*.c src/lab/*/*.c src/wire/zk/*.c src/service/tree/*.c \
                    src/service/log/*.c src/service/settings/*.c src/service/steps/*.c src/service/ensemble/codec*.c) $(addprefix src/peer/,awake.c codec.c channel.c durable.c group.c record.c record_read.c))) $(wildcard tests/cross/*.c)
PORTABLE_OBJECTS := $(PORTABLE_SOURCES:%.c=$(B)/portable/%.o) $(B)/portable/roll.o $(B)/portable/portuguese.o
NOT_PORTABLE := test_access test_change_spelling test_checkpoint test_client test_client_hostile test_client_parts test_client_script test_clock test_cost test_data test_dynlib test_fence test_fence_order test_fence_view test_identity test_json_text test_link test_link_lanes test_logger test_memory test_outbox test_peer_api test_peer_ends test_peer_sim test_read_index test_recipes test_room test_session test_snapshot test_transfer
PORTABLE_TESTS := $(filter-out $(NOT_PORTABLE) $(LEFT_OUT),$(UNIT_SOURCES:tests/unit/%.c=%))
PORTABLE_CFLAGS := $(LANGUAGE) $(WARNINGS) -Isrc -Iinclude -Itests/cross -I$(B)/include -pthread $(CFLAGS)

.SECONDARY: $(PORTABLE_OBJECTS) $(PORTABLE_TESTS:%=$(B)/portable/bin/%) $(PORTABLE_TESTS:%=$(B)/portable/tests/unit/%.o)

portable-tests: $(PORTABLE_TESTS:%=$(B)/portable/passed/%)
	@echo "$(words $^) programs of unit tests passed with $(CC)."

# The one header that is taken from this machine: it consists of inline functions.
$(B)/include/xxhash.h:
	@mkdir -p $(@D)
	@cp /usr/include/xxhash.h $@

$(B)/portable/%.o: %.c $(B)/include/xxhash.h $(B)/flags
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) $(PORTABLE_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/portable/roll.o: $(B)/obj/algorithms/roll.c $(B)/flags
	@echo "  CC    $<"
	@$(CC) $(PORTABLE_CFLAGS) -c -o $@ $<

$(B)/portable/portuguese.o: $(B)/obj/language/portuguese.c $(B)/flags
	@echo "  CC    $<"
	@$(CC) $(PORTABLE_CFLAGS) -c -o $@ $<

$(B)/portable.a: $(PORTABLE_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(B)/portable/bin/%: $(B)/portable/tests/unit/%.o $(B)/portable.a
	@mkdir -p $(@D)
	@$(CC) $(PORTABLE_CFLAGS) $(LDFLAGS) -o $@ $^ -lm

$(B)/portable/passed/%: $(B)/portable/bin/%
	@mkdir -p $(@D)
	@$(EMULATOR) $< >$@.log 2>&1 || { tail -40 $@.log; echo "FAILED  $*" >&2; exit 1; }
	@echo "ok      $* ($$(tail -1 $@.log))"
	@touch $@

ifneq ($(filter build-cross/%,$(B)),)
-include $(PORTABLE_OBJECTS:.o=.d) $(PORTABLE_TESTS:%=$(B)/portable/tests/unit/%.d)
endif

# ---- Manual pages: from --help, which is their one source ----
man: deps man-deps $(MANUALS)

$(B)/man/conclave.1: $(B)/conclave scripts/help-for-man | man-deps
	@mkdir -p $(@D)
	@echo "  MAN   $@"
	@scripts/help-for-man --examples $< --help >$@.examples
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) help2man --no-info --name "locks and leaders for distributed programs" \
	    --include $@.examples -o $@ "scripts/help-for-man $<"

$(B)/man/conclave-%.1: $(B)/conclave scripts/help-for-man | man-deps
	@mkdir -p $(@D)
	@echo "  MAN   $@"
	@scripts/help-for-man --examples $< $* --help >$@.examples
	@SOURCE_DATE_EPOCH=$(SOURCE_DATE_EPOCH) help2man --no-info --name "$$($< $* --summary)" \
	    --version-string "conclave-$* $(VERSION)" --include $@.examples \
	    -o $@ "scripts/help-for-man $< $*"

# ---- The rest ----
format:
	@./scripts/packages $(IF_MISSING) clang-format git
	clang-format -i $$(git ls-files '*.c' '*.h')

install: all man
	install -D -m 755 $(B)/conclave $(DESTDIR)$(PREFIX)/bin/conclave
	install -d $(DESTDIR)$(PREFIX)/share/man/man1 $(DESTDIR)$(PREFIX)/share/conclave/scenarios \
	    $(DESTDIR)$(PREFIX)/share/conclave/exercises
	install -m 644 $(MANUALS) $(DESTDIR)$(PREFIX)/share/man/man1
	install -m 644 scenarios/*.scenario $(DESTDIR)$(PREFIX)/share/conclave/scenarios
	install -m 644 exercises/* $(DESTDIR)$(PREFIX)/share/conclave/exercises

clean:
	rm -rf build build-asan build-ubsan build-cross build-lint build-sanitize build-tsan compile_commands.json

include packaging/library.mk
-include packaging/package.mk
