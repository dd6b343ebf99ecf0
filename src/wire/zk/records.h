/* The records of ZooKeeper's client protocol, each described once: its fields in the order of the
 * wire.  wire/zk/codec.h makes the struct, the decoder and the encoder of each, record.c the table.
 *
 * Types: bool, i32, i64; text (a string) and buffer, either of which can be null; late, a bool that
 * may be missing at the end; texts, acls and clients, vectors; id and stat, records in records. */
#ifndef CV_WIRE_ZK_RECORDS_H
#define CV_WIRE_ZK_RECORDS_H

/* ---- Parts of others ---- */

#define ZK_FIELDS_id(F, R)     F(R, text, scheme) F(R, text, id)
#define ZK_FIELDS_acl(F, R)    F(R, i32, perms) F(R, id, id)
#define ZK_FIELDS_client(F, R) F(R, text, scheme) F(R, text, user)
#define ZK_FIELDS_stat(F, R)                                                                       \
    F(R, i64, czxid)                                                                               \
    F(R, i64, mzxid)                                                                               \
    F(R, i64, ctime)                                                                               \
    F(R, i64, mtime)                                                                               \
    F(R, i32, version)                                                                             \
    F(R, i32, cversion)                                                                            \
    F(R, i32, aversion)                                                                            \
    F(R, i64, ephemeral_owner)                                                                     \
    F(R, i32, data_length)                                                                         \
    F(R, i32, num_children)                                                                        \
    F(R, i64, pzxid)

#define ZK_PARTS(R) R(id, "Id") R(acl, "ACL") R(client, "ClientInfo") R(stat, "Stat")

/* ---- Around requests and responses ---- */

#define ZK_FIELDS_connect_request(F, R)                                                            \
    F(R, i32, protocol_version)                                                                    \
    F(R, i64, last_zxid_seen)                                                                      \
    F(R, i32, timeout)                                                                             \
    F(R, i64, session_id)                                                                          \
    F(R, buffer, passwd)                                                                           \
    F(R, late, read_only)
#define ZK_FIELDS_connect_response(F, R)                                                           \
    F(R, i32, protocol_version)                                                                    \
    F(R, i32, timeout)                                                                             \
    F(R, i64, session_id)                                                                          \
    F(R, buffer, passwd)                                                                           \
    F(R, late, read_only)
#define ZK_FIELDS_request_header(F, R) F(R, i32, xid) F(R, i32, type)
#define ZK_FIELDS_reply_header(F, R)   F(R, i32, xid) F(R, i64, zxid) F(R, i32, err)
#define ZK_FIELDS_multi_header(F, R)   F(R, i32, type) F(R, bool, done) F(R, i32, err)
#define ZK_FIELDS_watcher_event(F, R)  F(R, i32, type) F(R, i32, state) F(R, text, path)

#define ZK_ENVELOPES(R)                                                                            \
    R(connect_request, "ConnectRequest")                                                           \
    R(connect_response, "ConnectResponse")                                                         \
    R(request_header, "RequestHeader")                                                             \
    R(reply_header, "ReplyHeader")                                                                 \
    R(multi_header, "MultiHeader")                                                                 \
    R(watcher_event, "WatcherEvent")

/* ---- Requests: struct zk_NAME_request ---- */

#define ZK_FIELDS_create_request(F, R)                                                             \
    F(R, text, path) F(R, buffer, data) F(R, acls, acl) F(R, i32, flags)
#define ZK_FIELDS_set_watches_request(F, R)                                                        \
    F(R, i64, relative_zxid) F(R, texts, data) F(R, texts, exist) F(R, texts, child)
#define ZK_FIELDS_set_watches2_request(F, R)                                                       \
    ZK_FIELDS_set_watches_request(F, R) F(R, texts, persistent) F(R, texts, persistent_recursive)
#define ZK_FIELDS_reconfig_request(F, R)                                                           \
    F(R, text, joining) F(R, text, leaving) F(R, text, members) F(R, i64, config_id)

#define ZK_FIELDS_create_ttl_request(F, R) ZK_FIELDS_create_request(F, R) F(R, i64, ttl)
#define ZK_FIELDS_set_data_request(F, R)   F(R, text, path) F(R, buffer, data) F(R, i32, version)
#define ZK_FIELDS_set_acl_request(F, R)    F(R, text, path) F(R, acls, acl) F(R, i32, version)
#define ZK_FIELDS_auth_request(F, R)       F(R, i32, type) F(R, text, scheme) F(R, buffer, auth)

#define ZK_FIELDS_delete_request(F, R)                  F(R, text, path) F(R, i32, version)
#define ZK_FIELDS_exists_request(F, R)                  F(R, text, path) F(R, bool, watch)
#define ZK_FIELDS_get_data_request(F, R)                F(R, text, path) F(R, bool, watch)
#define ZK_FIELDS_get_acl_request(F, R)                 F(R, text, path)
#define ZK_FIELDS_get_children_request(F, R)            F(R, text, path) F(R, bool, watch)
#define ZK_FIELDS_get_children2_request(F, R)           F(R, text, path) F(R, bool, watch)
#define ZK_FIELDS_sync_request(F, R)                    F(R, text, path)
#define ZK_FIELDS_check_request(F, R)                   F(R, text, path) F(R, i32, version)
#define ZK_FIELDS_check_watches_request(F, R)           F(R, text, path) F(R, i32, type)
#define ZK_FIELDS_remove_watches_request(F, R)          F(R, text, path) F(R, i32, type)
#define ZK_FIELDS_add_watch_request(F, R)               F(R, text, path) F(R, i32, mode)
#define ZK_FIELDS_get_ephemerals_request(F, R)          F(R, text, prefix)
#define ZK_FIELDS_get_all_children_number_request(F, R) F(R, text, path)
#define ZK_FIELDS_sasl_request(F, R)                    F(R, buffer, token)

#define ZK_REQUESTS(R)                                                                             \
    R(create, "CreateRequest")                                                                     \
    R(create_ttl, "CreateTTLRequest")                                                              \
    R(delete, "DeleteRequest")                                                                     \
    R(exists, "ExistsRequest")                                                                     \
    R(get_data, "GetDataRequest")                                                                  \
    R(set_data, "SetDataRequest")                                                                  \
    R(get_acl, "GetACLRequest")                                                                    \
    R(set_acl, "SetACLRequest")                                                                    \
    R(get_children, "GetChildrenRequest")                                                          \
    R(get_children2, "GetChildren2Request")                                                        \
    R(sync, "SyncRequest")                                                                         \
    R(check, "CheckVersionRequest")                                                                \
    R(reconfig, "ReconfigRequest")                                                                 \
    R(check_watches, "CheckWatchesRequest")                                                        \
    R(remove_watches, "RemoveWatchesRequest")                                                      \
    R(auth, "AuthPacket")                                                                          \
    R(set_watches, "SetWatches")                                                                   \
    R(set_watches2, "SetWatches2")                                                                 \
    R(add_watch, "AddWatchRequest")                                                                \
    R(sasl, "GetSASLRequest")                                                                      \
    R(get_ephemerals, "GetEphemeralsRequest")                                                      \
    R(get_all_children_number, "GetAllChildrenNumberRequest")

/* ---- Responses: struct zk_NAME_response ---- */

#define ZK_FIELDS_create_response(F, R)                  F(R, text, path)
#define ZK_FIELDS_create2_response(F, R)                 F(R, text, path) F(R, stat, stat)
#define ZK_FIELDS_exists_response(F, R)                  F(R, stat, stat)
#define ZK_FIELDS_get_data_response(F, R)                F(R, buffer, data) F(R, stat, stat)
#define ZK_FIELDS_set_data_response(F, R)                F(R, stat, stat)
#define ZK_FIELDS_get_acl_response(F, R)                 F(R, acls, acl) F(R, stat, stat)
#define ZK_FIELDS_set_acl_response(F, R)                 F(R, stat, stat)
#define ZK_FIELDS_get_children_response(F, R)            F(R, texts, children)
#define ZK_FIELDS_get_children2_response(F, R)           F(R, texts, children) F(R, stat, stat)
#define ZK_FIELDS_sync_response(F, R)                    F(R, text, path)
#define ZK_FIELDS_sasl_response(F, R)                    F(R, buffer, token)
#define ZK_FIELDS_get_ephemerals_response(F, R)          F(R, texts, ephemerals)
#define ZK_FIELDS_get_all_children_number_response(F, R) F(R, i32, total)
#define ZK_FIELDS_who_am_i_response(F, R)                F(R, clients, clients)
#define ZK_FIELDS_error_response(F, R)                   F(R, i32, err)

#define ZK_RESPONSES(R)                                                                            \
    R(create, "CreateResponse")                                                                    \
    R(create2, "Create2Response")                                                                  \
    R(exists, "ExistsResponse")                                                                    \
    R(get_data, "GetDataResponse")                                                                 \
    R(set_data, "SetDataResponse")                                                                 \
    R(get_acl, "GetACLResponse")                                                                   \
    R(set_acl, "SetACLResponse")                                                                   \
    R(get_children, "GetChildrenResponse")                                                         \
    R(get_children2, "GetChildren2Response")                                                       \
    R(sync, "SyncResponse")                                                                        \
    R(sasl, "SetSASLResponse")                                                                     \
    R(get_ephemerals, "GetEphemeralsResponse")                                                     \
    R(get_all_children_number, "GetAllChildrenNumberResponse")                                     \
    R(who_am_i, "WhoAmIResponse")                                                                  \
    R(error, "ErrorResponse")

#endif
