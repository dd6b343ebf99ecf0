/* The numbers of the protocol and their names. */
#ifndef CV_WIRE_ZK_NUMBERS_H
#define CV_WIRE_ZK_NUMBERS_H

/* ---- Operations ---- */

enum zk_kind {
    ZK_KIND_INTERNAL,   /* of servers only: a client gets the answer for an unknown operation */
    ZK_KIND_PART,       /* only inside a multi */
    ZK_KIND_READ,       /* answered from this server's tree */
    ZK_KIND_WRITE,      /* goes through the log */
    ZK_KIND_BARRIER,    /* waits for the log */
    ZK_KIND_SESSION,    /* keeps the session or ends it */
    ZK_KIND_CONNECTION, /* about who is at the other end */
};

/* O(CONSTANT, number, name, lop, kind, request, response, in)
 *
 * lop: the short name, as the list of connections shows the last operation of each.
 * in: the kind of multi that the operation can be part of. */
#define ZK_OPS(O)                                                                                  \
    O(CLOSE_SESSION, -11, "closeSession", "CLOS", SESSION, none, none, 0)                          \
    O(CREATE_SESSION, -10, "createSession", "SESS", INTERNAL, none, none, 0)                       \
    O(ERROR, -1, "error", "NA", INTERNAL, none, error_response, 0)                                 \
    O(NOTIFICATION, 0, "notification", "NA", INTERNAL, none, none, 0)                              \
    O(CREATE, 1, "create", "CREA", WRITE, create_request, create_response, ZK_OP_MULTI)            \
    O(DELETE, 2, "delete", "DELE", WRITE, delete_request, none, ZK_OP_MULTI)                       \
    O(EXISTS, 3, "exists", "EXIS", READ, exists_request, exists_response, 0)                       \
    O(GET_DATA, 4, "getData", "GETD", READ, get_data_request, get_data_response, ZK_OP_MULTI_READ) \
    O(SET_DATA, 5, "setData", "SETD", WRITE, set_data_request, set_data_response, ZK_OP_MULTI)     \
    O(GET_ACL, 6, "getACL", "GETA", READ, get_acl_request, get_acl_response, 0)                    \
    O(SET_ACL, 7, "setACL", "SETA", WRITE, set_acl_request, set_acl_response, 0)                   \
    O(GET_CHILDREN, 8, "getChildren", "GETC", READ, get_children_request, get_children_response,   \
      ZK_OP_MULTI_READ)                                                                            \
    O(SYNC, 9, "sync", "SYNC", BARRIER, sync_request, sync_response, 0)                            \
    O(PING, 11, "ping", "PING", SESSION, none, none, 0)                                            \
    O(GET_CHILDREN2, 12, "getChildren2", "GETC", READ, get_children2_request,                      \
      get_children2_response, 0)                                                                   \
    O(CHECK, 13, "check", "CHEC", PART, check_request, none, ZK_OP_MULTI)                          \
    O(MULTI, 14, "multi", "MULT", WRITE, none, none, 0)                                            \
    O(CREATE2, 15, "create2", "CREA", WRITE, create_request, create2_response, ZK_OP_MULTI)        \
    O(RECONFIG, 16, "reconfig", "RECO", WRITE, reconfig_request, get_data_response, 0)             \
    O(CHECK_WATCHES, 17, "checkWatches", "CHKW", READ, check_watches_request, none, 0)             \
    O(REMOVE_WATCHES, 18, "removeWatches", "REMW", READ, remove_watches_request, none, 0)          \
    O(CREATE_CONTAINER, 19, "createContainer", "CREA", WRITE, create_request, create2_response,    \
      ZK_OP_MULTI)                                                                                 \
    O(DELETE_CONTAINER, 20, "deleteContainer", "DELE", INTERNAL, none, none, 0)                    \
    O(CREATE_TTL, 21, "createTTL", "CREA", WRITE, create_ttl_request, create2_response,            \
      ZK_OP_MULTI)                                                                                 \
    O(MULTI_READ, 22, "multiRead", "MLTR", READ, none, none, 0)                                    \
    O(AUTH, 100, "auth", "NA", CONNECTION, auth_request, none, 0)                                  \
    O(SET_WATCHES, 101, "setWatches", "SETW", READ, set_watches_request, none, 0)                  \
    O(SASL, 102, "sasl", "NA", CONNECTION, sasl_request, sasl_response, 0)                         \
    O(GET_EPHEMERALS, 103, "getEphemerals", "GETE", READ, get_ephemerals_request,                  \
      get_ephemerals_response, 0)                                                                  \
    O(GET_ALL_CHILDREN_NUMBER, 104, "getAllChildrenNumber", "GETACN", READ,                        \
      get_all_children_number_request, get_all_children_number_response, 0)                        \
    O(SET_WATCHES2, 105, "setWatches2", "STW2", READ, set_watches2_request, none, 0)               \
    O(ADD_WATCH, 106, "addWatch", "ADDW", READ, add_watch_request, error_response, 0)              \
    O(WHO_AM_I, 107, "whoAmI", "HOMI", CONNECTION, none, who_am_i_response, 0)

#define ZK_OP_CONSTANT_(NAME, NUMBER, ...) ZK_OP_##NAME = NUMBER,
enum zk_opcode { ZK_OPS(ZK_OP_CONSTANT_) ZK_OP_FIRST = ZK_OP_CLOSE_SESSION, ZK_OP_LAST = 107 };

/* ---- Errors ---- */

#define ZK_ERRORS(E)                                                                               \
    E(OK, 0)                                                                                       \
    E(SYSTEMERROR, -1)                                                                             \
    E(RUNTIMEINCONSISTENCY, -2)                                                                    \
    E(DATAINCONSISTENCY, -3)                                                                       \
    E(CONNECTIONLOSS, -4)                                                                          \
    E(MARSHALLINGERROR, -5)                                                                        \
    E(UNIMPLEMENTED, -6)                                                                           \
    E(OPERATIONTIMEOUT, -7)                                                                        \
    E(BADARGUMENTS, -8)                                                                            \
    E(UNKNOWNSESSION, -12)                                                                         \
    E(NEWCONFIGNOQUORUM, -13)                                                                      \
    E(RECONFIGINPROGRESS, -14)                                                                     \
    E(APIERROR, -100)                                                                              \
    E(NONODE, -101)                                                                                \
    E(NOAUTH, -102)                                                                                \
    E(BADVERSION, -103)                                                                            \
    E(NOCHILDRENFOREPHEMERALS, -108)                                                               \
    E(NODEEXISTS, -110)                                                                            \
    E(NOTEMPTY, -111)                                                                              \
    E(SESSIONEXPIRED, -112)                                                                        \
    E(INVALIDCALLBACK, -113)                                                                       \
    E(INVALIDACL, -114)                                                                            \
    E(AUTHFAILED, -115)                                                                            \
    E(CLOSING, -116)                                                                               \
    E(NOTHING, -117)                                                                               \
    E(SESSIONMOVED, -118)                                                                          \
    E(NOTREADONLY, -119)                                                                           \
    E(EPHEMERALONLOCALSESSION, -120)                                                               \
    E(NOWATCHER, -121)                                                                             \
    E(REQUESTTIMEOUT, -122)                                                                        \
    E(RECONFIGDISABLED, -123)                                                                      \
    E(SESSIONCLOSEDREQUIRESASLAUTH, -124)                                                          \
    E(QUOTAEXCEEDED, -125)                                                                         \
    E(THROTTLEDOP, -127)

#define ZK_ERROR_CONSTANT_(NAME, NUMBER) ZK_##NAME = NUMBER,
enum zk_error { ZK_ERRORS(ZK_ERROR_CONSTANT_) };

/* ---- In fields ---- */

enum zk_xid { /* those with a meaning of their own */
              ZK_XID_EVENT = -1,
              ZK_XID_PING = -2,
              ZK_XID_AUTH = -4,
              ZK_XID_SET_WATCHES = -8,
};

enum zk_event {
    ZK_NODE_CREATED = 1,
    ZK_NODE_DELETED = 2,
    ZK_NODE_DATA_CHANGED = 3,
    ZK_NODE_CHILDREN_CHANGED = 4,
};
enum { ZK_SYNC_CONNECTED = 3 }; /* the state in every event that a server sends */

enum zk_mode { /* the flags of a create */
               ZK_PERSISTENT = 0,
               ZK_EPHEMERAL = 1,
               ZK_SEQUENTIAL = 2,
               ZK_EPHEMERAL_SEQUENTIAL = 3,
               ZK_CONTAINER = 4,
               ZK_TTL = 5,
               ZK_TTL_SEQUENTIAL = 6,
};

#endif
