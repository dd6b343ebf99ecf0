/* conclave cheat: one page that reminds of the commands for clients. */
#include "cli/cli.h"

static const char doc[] = "Prints one page with the commands that are clients of a server.\v"
                          "Examples:\n"
                          "  conclave cheat | less\n";

static const char page[] =
    "A server to try it on           conclave serve\n"
    "Which server                    --server HOST:PORT[,...][/PATH], CONCLAVE_SERVER,\n"
    "                                conclave context add prod --server ...; context use prod\n"
    "Who is asking                   --auth-file FILE, CONCLAVE_AUTH=user:password, --tls-cert\n"
    "For programs                    --json\n"
    "\n"
    "LOCKS AND LEADERS\n"
    "Run while nobody else does      conclave lock NAME -- COMMAND\n"
    "  or give up                    conclave lock -n NAME -- COMMAND    (-w 10s: after a while)\n"
    "  two locks, all or none        conclave lock ONE TWO -- COMMAND\n"
    "  readers; three at a time      conclave lock -s NAME -- ...; conclave lock --slots 3 ...\n"
    "Cron on many machines, one run  conclave once NAME --slot \"$(date +%F)\" -- COMMAND\n"
    "Run while leader                conclave elect NAME -- COMMAND\n"
    "Who holds, who waits            conclave locks [NAME]; conclave leader NAME\n"
    "\n"
    "THE TREE\n"
    "Look                            conclave ls /; ls -l /; ls -R /; tree / -L 2; stat /app\n"
    "Read, write                     conclave get /app; set /app DATA; set /app -f FILE\n"
    "  if nobody was faster          conclave set /app DATA --version 7\n"
    "Make                            conclave create /app DATA; create -p /a/b/c\n"
    "  numbered; that goes away      conclave create -s /job-; create --ttl 1h /x\n"
    "  as long as a command runs     conclave create -e /workers/me -- COMMAND\n"
    "Remove                          conclave rm /app; rm -r /app\n"
    "All or nothing                  conclave multi FILE\n"
    "Copy                            conclave cp -r :/app backup; cp -r backup :/app\n"
    "  to another server             conclave cp -r :/app zk2:2181:/app; cp -r prod:/a test:/a\n"
    "Permissions                     conclave acl /app; acl /app auth::cdrwa,world:anyone:r\n"
    "See changes                     conclave watch -R /app; get -w /app; ls -w /app\n"
    "  and act                       conclave watch /app -- sh -c 'echo $CONCLAVE_EVENT'\n"
    "\n"
    "RECIPES\n"
    "Count                           conclave counter /visits --add 1\n"
    "Share out work                  conclave queue put /jobs DATA; queue take /jobs -- COMMAND\n"
    "Hold back, let go               conclave barrier close /b; barrier wait /b; barrier open /b\n"
    "Begin and end together          conclave barrier enter /start 3 -- COMMAND\n"
    "\n"
    "All of these in one session     conclave shell\n"
    "Exit status                     0; 1 conflict; 2 usage; 3 system; 69 no server; 75 busy or\n"
    "                                too late; 76 lock lost, command killed; 77 not allowed\n";

int cmd_cheat(int argc, char **argv) {
    static const struct argp argp = {NULL, NULL, NULL, doc, NULL, NULL, NULL};
    argp_parse(&argp, argc, argv, 0, NULL, NULL);
    fputs(page, stdout);
    return EXIT_OK;
}
