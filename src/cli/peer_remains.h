/* What the commands of a participant have left behind when that has ended.
 *
 * A participant shares a locked file of its data with each command that it lets in, and with
 * whatever that starts.  If the participant is killed, the next one does not take part before these
 * are gone: to the others they are inside. */
#ifndef CV_CLI_PEER_REMAINS_H
#define CV_CLI_PEER_REMAINS_H

/* Waits until nothing is left of the commands of earlier participants with that data.  `signals`
 * can be read when this one has to end.  Returns the file for its own commands; -1: errno says why
 * not, EINTR: a signal came. */
int peer_remains_open(const char *data, int signals);

#endif
