# libconclave, the client library: shared and static, its header, and what pkg-config says of it.  Part of the Makefile.
#
# Its objects are compiled a second time, for code at any address.  Only what include/conclave.h and include/conclave/peer.h
# declare is visible: all else is hidden, in the shared library by the version script, in the static one by being made local.
# The static one has two parts, clients and peers, so that a program without peers needs no libuv.
ABI            := 0
LIB_SOURCES    := $(sort $(wildcard src/client/*.c src/client/*/*.c src/recipe/*.c src/wire/zk/*.c))
LIB_BASE       := $(sort $(wildcard src/base/*.c))
LIB_OBJECTS    := $(LIB_SOURCES:src/%.c=$(B)/lib/%.o)
LIB_BASE_OBJECTS := $(LIB_BASE:src/%.c=$(B)/lib/%.o)
LIB_PEERS      := $(sort $(wildcard src/peer/*.c src/process/*.c src/algorithms/*.c src/algorithms/*/*.c src/raft/*.c src/wire/net/*.c))
LIB_PEER_OBJECTS := $(LIB_PEERS:src/%.c=$(B)/lib/%.o) $(B)/lib/algorithms/roll.o
LIB_CFLAGS     := $(ALL_CFLAGS) -fPIC -fvisibility=hidden -DLOGGER_LEVEL=LOGGER_WARNING
LIB_LIBRARIES  := -lssl -lcrypto -luv -lm -pthread
LIB_DIR        ?= $(PREFIX)/lib
SHARED         := libconclave.so.$(VERSION)

.PHONY: library examples install-headers install-library

library: deps $(B)/libconclave.so $(B)/libconclave.a

$(B)/lib/%.o: src/%.c $(B)/flags | deps
	@mkdir -p $(@D)
	@echo "  CC    $< (library)"
	@$(CC) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

$(B)/lib/algorithms/roll.o: $(B)/obj/algorithms/roll.c $(B)/flags | deps
	@mkdir -p $(@D)
	@echo "  CC    $< (library)"
	@$(CC) $(LIB_CFLAGS) -MMD -MP -c -o $@ $<

# What peers for programs use, and no more; the same of src/base.
$(B)/lib/peers.a: $(LIB_PEER_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(B)/lib/base.a: $(LIB_BASE_OBJECTS)
	@rm -f $@
	@$(AR) rcs $@ $^

$(B)/$(SHARED): $(LIB_OBJECTS) $(B)/lib/peers.a $(B)/lib/base.a packaging/libconclave.map
	@echo "  LINK  $@"
	@$(CC) $(LIB_CFLAGS) $(LDFLAGS) -shared -Wl,-soname,libconclave.so.$(ABI) \
	    -Wl,--version-script=packaging/libconclave.map $(if $(SANITIZE),,-Wl,--no-undefined) -o $@ $(LIB_OBJECTS) $(B)/lib/peer/api.o \
	    $(B)/lib/peers.a $(B)/lib/base.a $(LIB_LIBRARIES)

$(B)/libconclave.so: $(B)/$(SHARED)
	@ln -sf $(SHARED) $(B)/libconclave.so.$(ABI)
	@ln -sf libconclave.so.$(ABI) $@

$(B)/libconclave.a: $(LIB_OBJECTS) $(B)/lib/peers.a $(B)/lib/base.a
	@echo "  AR    $@"
	@$(CC) -r -nostdlib -o $(B)/lib/all.o $(LIB_OBJECTS) $(B)/lib/base.a
	@$(CC) -r -nostdlib -o $(B)/lib/all_peers.o $(B)/lib/peer/api.o $(B)/lib/peers.a $(B)/lib/base.a
	@objcopy --localize-hidden $(B)/lib/all.o
	@objcopy --localize-hidden $(B)/lib/all_peers.o
	@rm -f $@
	@$(AR) rcs $@ $(B)/lib/all.o $(B)/lib/all_peers.o

-include $(LIB_OBJECTS:.o=.d) $(LIB_PEER_OBJECTS:.o=.d) $(LIB_BASE_OBJECTS:.o=.d)

# ---- Examples: as a user of the library would build them ----
EXAMPLES := $(patsubst examples/%.c,$(B)/examples/%,$(sort $(wildcard examples/*.c)))
examples: $(EXAMPLES)

$(B)/examples/%: examples/%.c include/conclave.h include/conclave/peer.h $(B)/libconclave.so
	@mkdir -p $(@D)
	@echo "  CC    $<"
	@$(CC) -std=c11 -Wall -Wextra $(WERROR) -D_POSIX_C_SOURCE=200809L -Iinclude $(CFLAGS) $(SANITIZE) -o $@ $< -L$(B) -lconclave \
	    -Wl,-rpath,'$$ORIGIN/..'

# ---- make install ----
install: install-library

# conclave/algorithm.h is for algorithms of one's own, which need no library.
install-headers:
	install -D -m 644 include/conclave.h $(DESTDIR)$(PREFIX)/include/conclave.h
	install -D -m 644 include/conclave/peer.h $(DESTDIR)$(PREFIX)/include/conclave/peer.h
	install -D -m 644 include/conclave/algorithm.h $(DESTDIR)$(PREFIX)/include/conclave/algorithm.h

install-library: library install-headers
	install -D -m 644 $(B)/$(SHARED) $(DESTDIR)$(LIB_DIR)/$(SHARED)
	ln -sf $(SHARED) $(DESTDIR)$(LIB_DIR)/libconclave.so.$(ABI)
	ln -sf libconclave.so.$(ABI) $(DESTDIR)$(LIB_DIR)/libconclave.so
	install -m 644 $(B)/libconclave.a $(DESTDIR)$(LIB_DIR)/libconclave.a
	install -d $(DESTDIR)$(LIB_DIR)/pkgconfig
	sed 's|@PREFIX@|$(PREFIX)|; s|@LIBDIR@|$(LIB_DIR)|; s|@VERSION@|$(VERSION)|' packaging/conclave.pc.in \
	    >$(DESTDIR)$(LIB_DIR)/pkgconfig/conclave.pc
	install -d $(DESTDIR)$(PREFIX)/share/doc/libconclave-dev/examples
	install -m 644 examples/*.c examples/*.py $(DESTDIR)$(PREFIX)/share/doc/libconclave-dev/examples
