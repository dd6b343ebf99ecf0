#include "algorithms/module.h"

#include <dlfcn.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include "process/contract.h"

#define TEXT_(WORD) #WORD
#define TEXT(WORD)  TEXT_(WORD)

static const char suffix[] = ".so";

bool module_is_named(const char *name) {
    size_t length = strlen(name), end = sizeof suffix - 1;
    return length > end && strcmp(name + length - end, suffix) == 0;
}

__attribute__((format(printf, 3, 4))) static int fail(char error[MODULE_ERROR_MAX],
                                                      const char *path, const char *format, ...) {
    int used = snprintf(error, MODULE_ERROR_MAX, "%.200s: ", path);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(error + used, (size_t)(MODULE_ERROR_MAX - used), format, arguments);
    va_end(arguments);
    error[strcspn(error, "\n")] = 0;
    return -1;
}

/* ---- The file ---- */

#if defined(__x86_64__)
enum { MACHINE = EM_X86_64 };
#elif defined(__aarch64__)
enum { MACHINE = EM_AARCH64 };
#else
enum { MACHINE = EM_NONE }; /* the loader will tell */
#endif

/* Whether all of what the loader will map is there; where it is not, the loader crashes. */
static bool is_whole(int file, const Elf64_Ehdr *head, uint64_t size) {
    for (unsigned i = 0; i < head->e_phnum; i++) {
        Elf64_Phdr part;
        off_t at = (off_t)(head->e_phoff + i * sizeof part);
        if (head->e_phentsize != sizeof part || pread(file, &part, sizeof part, at) != sizeof part)
            return false;
        if (part.p_offset > size || part.p_filesz > size - part.p_offset) return false;
    }
    return true;
}

/* The loader's own words about a wrong file are no help. */
static const char *problem_of(int file) {
    Elf64_Ehdr head = {0};
    struct stat status;
    if (fstat(file, &status) != 0 || !S_ISREG(status.st_mode)) return "not a file";
    ssize_t size = read(file, &head, sizeof head);
    if (size < EI_NIDENT || memcmp(head.e_ident, ELFMAG, SELFMAG) != 0)
        return "not a shared library; compile the algorithm with -shared -fPIC";
    if (size < (ssize_t)sizeof head) return "a part of it is missing";
    if (head.e_ident[EI_CLASS] != ELFCLASS64 || (MACHINE != EM_NONE && head.e_machine != MACHINE))
        return "it was compiled for another processor";
    if (head.e_type != ET_DYN)
        return "not a shared library; compile the algorithm with -shared -fPIC";
    return is_whole(file, &head, (uint64_t)status.st_size) ? NULL : "a part of it is missing";
}

static int inspect_file(const char *path, char error[MODULE_ERROR_MAX]) {
    int file = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    if (file < 0) return fail(error, path, "%s", strerror(errno));
    const char *problem = problem_of(file);
    close(file);
    return problem ? fail(error, path, "%s", problem) : 0;
}

/* ---- The module ---- */

static int inspect_version(const struct cv_module *module, const char *path,
                           char error[MODULE_ERROR_MAX]) {
    static const char magic[8] = CV_MODULE_MAGIC;
    static const uint16_t size[CV_MODULE_SIZES] = CV_MODULE_SIZES_;
    if (memcmp(module->magic, magic, sizeof magic) != 0)
        return fail(error, path, "its '%s' was not made by CV_ALGORITHM", TEXT(CV_MODULE));
    if (module->version != CV_MODULE_VERSION)
        return fail(error, path,
                    "it was compiled against version %u of conclave/algorithm.h, and this program "
                    "has version %d: compile it again",
                    module->version, CV_MODULE_VERSION);
    if (memcmp(module->size, size, sizeof size) != 0)
        return fail(error, path,
                    "it was compiled against another conclave/algorithm.h than this program has: "
                    "compile it again");
    return 0;
}

static int inspect_algorithm(const struct cv_module *module, const char *path,
                             char error[MODULE_ERROR_MAX]) {
    char buffer[256];
    if (!module->algorithm || !module->source) return fail(error, path, "it names no algorithm");
    const char *problem = contract_problem(module->algorithm, buffer, sizeof buffer);
    return problem ? fail(error, path, "%s", problem) : 0;
}

int module_inspect(const struct cv_module *module, const char *path, char error[MODULE_ERROR_MAX]) {
    if (inspect_version(module, path, error) != 0) return -1;
    return inspect_algorithm(module, path, error);
}

static const char *or_nothing(const char *text) { return text ? text : ""; }

/* What was compiled stays as it is; the program uses a copy. */
static int adopt(struct cv_module *module, const char *path, char error[MODULE_ERROR_MAX]) {
    struct cv_algorithm loaded = *module->algorithm;
    loaded.name = strdup(path);
    if (!loaded.name) return fail(error, path, "out of memory");
    loaded.paper = or_nothing(loaded.paper);
    loaded.cost = or_nothing(loaded.cost);
    loaded.delay = or_nothing(loaded.delay);
    loaded.tolerates = or_nothing(loaded.tolerates);
    loaded.traits |= CV_FROM_FILE;
    module->loaded = loaded;
    return 0;
}

const struct cv_algorithm *module_load(const char *path, char error[MODULE_ERROR_MAX]) {
    char here[4096];
    /* Without a slash the loader would look among the system's libraries. */
    snprintf(here, sizeof here, "%s%s", strchr(path, '/') ? "" : "./", path);
    if (inspect_file(here, error) != 0) return NULL;
    contract_explain_ends();
    contract_place = (struct contract_place){.algorithm = path};
    void *library = dlopen(here, RTLD_NOW | RTLD_LOCAL);
    contract_place.algorithm = NULL;
    if (!library) {
        const char *why = or_nothing(dlerror());
        size_t prefix = strlen(here);
        if (strncmp(why, here, prefix) == 0 && strncmp(why + prefix, ": ", 2) == 0)
            why += prefix + 2;
        fail(error, path, "it cannot be loaded: %s", why);
        return NULL;
    }
    struct cv_module *module = dlsym(library, TEXT(CV_MODULE));
    int failed = !module ? fail(error, path, "it has no algorithm: CV_ALGORITHM(name) = {...};")
                         : module_inspect(module, path, error);
    if (!failed && !module->loaded.name) failed = adopt(module, path, error);
    if (!failed) return &module->loaded;
    dlclose(library);
    return NULL;
}

const char *module_source(const struct cv_algorithm *algorithm, char *buffer, size_t size) {
    if (size) *buffer = 0;
    if (!(algorithm->traits & CV_FROM_FILE)) return buffer;
    const struct cv_module *module =
        (const void *)((const char *)algorithm - offsetof(struct cv_module, loaded));
    const char *slash = strrchr(algorithm->name, '/'), *base = strrchr(module->source, '/');
    snprintf(buffer, size, "%.*s%s", slash ? (int)(slash + 1 - algorithm->name) : 0,
             algorithm->name, base ? base + 1 : module->source);
    return buffer;
}
