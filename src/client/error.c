/* What errors mean. */
#include "conclave.h"

const char *cv_error_text(int error) {
    switch (error) {
    case CV_OK: return "no error";
    case CV_SYSTEM_ERROR: return "the system has failed";
    case -2: return "not done, because another operation of the transaction failed";
    case -3: return "the server's data are inconsistent";
    case CV_CONNECTION_LOSS:
        return "the connection broke; the request may have taken effect or not";
    case CV_MARSHALLING_ERROR: return "the server cannot read the request";
    case CV_UNIMPLEMENTED: return "the server does not have this operation";
    case CV_OPERATION_TIMEOUT: return "timed out";
    case CV_BAD_ARGUMENTS: return "a path or an argument is not valid";
    case -13: return "no quorum of the new members is connected and up to date";
    case -14: return "another change of the members is under way";
    case CV_NO_NODE: return "there is no such node";
    case CV_NO_AUTH: return "the node's ACL does not allow this";
    case CV_BAD_VERSION: return "the node has another version: it was changed meanwhile";
    case CV_NO_CHILDREN_FOR_EPHEMERALS: return "an ephemeral node cannot have children";
    case CV_NODE_EXISTS: return "the node exists already";
    case CV_NOT_EMPTY: return "the node has children";
    case CV_SESSION_EXPIRED: return "the session has expired";
    case CV_INVALID_ACL: return "the ACL is not valid";
    case CV_AUTH_FAILED: return "the server does not accept the authentication";
    case CV_CLOSING: return "the client is being closed";
    case CV_NOTHING: return "there was nothing to do";
    case CV_SESSION_MOVED: return "the session has moved to another server";
    case CV_NOT_READ_ONLY: return "the server has no leader at the moment, and only answers reads";
    case -120: return "a local session cannot have ephemeral nodes";
    case CV_NO_WATCHER: return "there is no such watch";
    case CV_REQUEST_TIMEOUT: return "the server did not finish the request in time";
    case -123: return "the server does not allow changes of its members";
    case -124: return "the server wants authentication by SASL";
    case CV_QUOTA_EXCEEDED: return "the quota is exceeded";
    case CV_THROTTLED: return "the server has too much to do";
    case CV_NO_SERVER: return "no server answers";
    case CV_WOULD_DEADLOCK: return "called from a callback, where nothing may wait";
    case CV_NO_MEMORY: return "there is no memory";
    case CV_BUSY: return "somebody else holds it";
    case CV_LOST: return "it was lost, and somebody else may have it";
    case CV_NOT_HELD: return "it is not held";
    case CV_TLS_FAILED: return "the files for TLS cannot be used";
    case CV_OTHER_RECIPE:
        return "others compete for it by another recipe, and would not wait for us";
    default: return "unknown error";
    }
}
