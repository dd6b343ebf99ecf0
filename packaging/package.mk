# What lets others install Conclave: the service, completions, the Debian package.  Part of the Makefile.
DEB_PACKAGES      := dpkg-dev help2man
DEB_TEST_PACKAGES := debootstrap iproute2 lintian python3
TEST_PACKAGES     += python3-yaml zsh

# The unit of `make install` needs no user and no configuration; the package has both.
UNIT_ARGUMENTS ?= --data /var/lib/conclave
UNIT_USER      ?= DynamicUser=yes
UNIT_DIR       ?= $(PREFIX)/lib/systemd/system
BASH_DIR       ?= $(PREFIX)/share/bash-completion/completions
ZSH_DIR        ?= $(PREFIX)/share/zsh/site-functions

.PHONY: completions install-service install-completions deb test-deb

# ---- Completions: from --help, as the manual pages ----
completions: $(B)/completions/conclave.bash $(B)/completions/_conclave

$(B)/completions/conclave.bash: $(B)/conclave packaging/completion
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	@packaging/completion bash $< >$@

$(B)/completions/_conclave: $(B)/conclave packaging/completion
	@mkdir -p $(@D)
	@echo "  GEN   $@"
	@packaging/completion zsh $< >$@

# ---- make install ----
install: install-service install-completions

install-service:
	install -d $(DESTDIR)$(UNIT_DIR)
	sed 's|@PREFIX@|$(PREFIX)|; s|@ARGUMENTS@|$(UNIT_ARGUMENTS)|; s|@USER@|$(UNIT_USER)|' packaging/conclave.service \
	    >$(DESTDIR)$(UNIT_DIR)/conclave.service

install-completions: all completions
	install -D -m 644 $(B)/completions/conclave.bash $(DESTDIR)$(BASH_DIR)/conclave
	install -D -m 644 $(B)/completions/_conclave $(DESTDIR)$(ZSH_DIR)/_conclave

# ---- The Debian package, for Debian 12 and the architecture of this machine: build/deb/*.deb ----
# Everything is built anew with Debian's flags and installed into one tree, which packaging/build-deb shares out
# among the packages of packaging/debian/control.
DEB_FLAGS = $(shell DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get CFLAGS) \
            $(shell DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get CPPFLAGS) \
            $(shell DEB_BUILD_MAINT_OPTIONS=hardening=+all dpkg-buildflags --get LDFLAGS) -O3

deb:
	$(call install,$(DEB_PACKAGES))
	@rm -rf $(B)/deb/tree
	@export SOURCE_DATE_EPOCH=$$(dpkg-parsechangelog -l packaging/debian/changelog -S Timestamp) && \
	$(MAKE) --no-print-directory B=$(B)/deb/build TEST_PACKAGES="$(DEB_PACKAGES)" CFLAGS="$(DEB_FLAGS)" \
	    DESTDIR=$(abspath $(B))/deb/tree PREFIX=/usr UNIT_DIR=/lib/systemd/system \
	    UNIT_USER=User=conclave UNIT_ARGUMENTS="--config /etc/conclave/zoo.cfg" \
	    ZSH_DIR=/usr/share/zsh/vendor-completions LIB_DIR=/usr/lib/$$(dpkg-architecture -q DEB_HOST_MULTIARCH) install && \
	packaging/build-deb $(VERSION) $(B)/deb/tree $(B)/deb

# Installs the package in a minimal system, uses it, and removes it; as root, and for some minutes.
test-deb: deb
	$(call install,$(DEB_TEST_PACKAGES))
	@packaging/test-deb $(B)/deb
