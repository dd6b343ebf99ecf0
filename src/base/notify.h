#ifndef CV_BASE_NOTIFY_H
#define CV_BASE_NOTIFY_H

/* Tells the service manager (systemd) how this process is, such as "READY=1", by the protocol of
 * sd_notify(3); nothing happens if nobody asked to be told.  Written here because libsystemd and
 * what it loads would cost every command of the program a millisecond. */
void notify_service_manager(const char *state);

#endif
