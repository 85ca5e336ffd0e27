// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The operators' socket: connections, framing, events.
 *
 * A client may send commands in pieces and several at a time. One that does not
 * read what it is sent is disconnected.
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "device.h"
#include "qmp.h"
#include "util.h"

/* Clients at a time, and bytes that one may leave unread. */
#define VUB_QMP_MAX_CLIENTS	16
#define VUB_QMP_MAX_UNREAD	(UINT64_C(1) << 20)
/* Bytes that are taken from a client in one turn. */
#define VUB_QMP_READ		4096
/* Least time between two events. */
#define VUB_QMP_EVENT_PAUSE	VUB_NSEC_PER_SEC

static void vub_client_close(struct vub_qmp_client *client)
{
	struct vub_qmp *qmp = client->qmp;
	struct vub_qmp_client **link;
	int fd = client->source.fd;

	for (link = &qmp->clients; *link != client; link = &(*link)->next)
		;
	*link = client->next;
	qmp->nr_clients--;
	vub_loop_remove(&qmp->dev->loop, &client->source);
	close(fd);
	free(client->out);
	free(client);
}

/* Send what there is, as far as the client takes it. */
static void vub_client_flush(struct vub_qmp_client *client)
{
	ssize_t done;

	if (client->gone || !client->nr_out)
		return;
	done = send(client->source.fd, client->out, client->nr_out,
		    MSG_DONTWAIT | MSG_NOSIGNAL);
	if (done < 0 && errno != EAGAIN && errno != EINTR) {
		client->gone = true;
		return;
	}
	if (done > 0) {
		client->nr_out -= (size_t)done;
		memmove(client->out, client->out + done, client->nr_out);
	}
	vub_loop_change(&client->qmp->dev->loop, &client->source,
			client->nr_out ? EPOLLIN | EPOLLOUT : EPOLLIN);
}

static void vub_client_send(struct vub_qmp_client *client, const char *text)
{
	size_t len = strlen(text);
	char *out;

	if (client->gone)
		return;
	out = realloc(client->out, client->nr_out + len + 2);
	if (!out || client->nr_out + len > VUB_QMP_MAX_UNREAD) {
		client->out = out ?: client->out;
		client->gone = true;
		/* Whoever is called for this client next closes it. */
		shutdown(client->source.fd, SHUT_RDWR);
		return;
	}
	memcpy(out + client->nr_out, text, len);
	memcpy(out + client->nr_out + len, "\r\n", 2);
	client->out = out;
	client->nr_out += len + 2;
	vub_client_flush(client);
}

static void vub_client_send_json(struct vub_qmp_client *client, json_t *json)
{
	char *text = json_dumps(json, JSON_ENCODE_ANY);

	json_decref(json);
	if (text)
		vub_client_send(client, text);
	free(text);
}

static void vub_client_greet(struct vub_qmp_client *client)
{
	vub_client_send_json(client,
			     json_pack("{s:{s:o,s:[]}}", "QMP", "version",
				       vub_qmp_version(), "capabilities"));
}

static void vub_client_answer_text(struct vub_qmp_client *client,
				   const char *value, json_t *id)
{
	char *id_text = id ? json_dumps(id, JSON_ENCODE_ANY) : NULL;
	char *text = NULL;
	int len;

	if (id_text)
		len = asprintf(&text, "{\"return\": %s, \"id\": %s}", value,
			       id_text);
	else
		len = asprintf(&text, "{\"return\": %s}", value);
	if (len >= 0)
		vub_client_send(client, text);
	free(text);
	free(id_text);
}

/* Send what came of a command, and free it. */
static void vub_client_answer(struct vub_qmp_client *client,
			      struct vub_reply *reply, json_t *id)
{
	json_t *answer;

	if (reply->text) {
		vub_client_answer_text(client, reply->text, id);
		free(reply->text);
		return;
	}
	if (reply->value)
		answer = json_pack("{s:o}", "return", reply->value);
	else
		answer = json_pack("{s:{s:s,s:o}}", "error", "class",
				   reply->error_class, "desc",
				   reply->error_desc);
	if (id)
		json_object_set(answer, "id", id);
	vub_client_send_json(client, answer);
}

/* What is wrong with a command before its name is looked at; NULL: nothing. */
static const char *vub_command_fault(const json_t *command)
{
	const char *key;
	json_t *value;

	if (!json_is_object(command))
		return "a command is a JSON object";
	json_object_foreach((json_t *)command, key, value) {
		if (!strcmp(key, "execute")) {
			if (!json_is_string(value))
				return "'execute' is the name of a command, a string";
		} else if (!strcmp(key, "arguments")) {
			if (!json_is_object(value))
				return "'arguments' is a JSON object";
		} else if (strcmp(key, "id")) {
			return "a command has 'execute', 'arguments' and 'id', and nothing else";
		}
	}
	return json_object_get(command, "execute") ? NULL :
						     "'execute' is missing";
}

static void vub_client_command(struct vub_qmp_client *client)
{
	struct vub_reply reply = { 0 };
	json_error_t error;
	const char *fault;
	json_t *command;

	command = json_loadb(client->in, client->nr_in,
			     JSON_DECODE_ANY | JSON_REJECT_DUPLICATES, &error);
	fault = command ? vub_command_fault(command) : error.text;
	if (fault)
		vub_reply_error(&reply, "GenericError", "%s", fault);
	else
		vub_qmp_execute(client,
				json_string_value(json_object_get(command, "execute")),
				json_object_get(command, "arguments"), &reply);
	vub_client_answer(client, &reply, json_object_get(command, "id"));
	json_decref(command);
}

static void vub_client_reset(struct vub_qmp_client *client)
{
	client->nr_in = 0;
	client->depth = 0;
	client->in_string = false;
	client->escaped = false;
}

/* Follow the structure of what comes in; true when a command is complete. */
static bool vub_client_follow(struct vub_qmp_client *client, char c)
{
	if (client->in_string) {
		if (client->escaped)
			client->escaped = false;
		else if (c == '\\')
			client->escaped = true;
		else if (c == '"')
			client->in_string = false;
		return false;
	}
	switch (c) {
	case '"':
		client->in_string = true;
		return false;
	case '{':
	case '[':
		client->depth++;
		return false;
	case '}':
	case ']':
		return !client->depth || !--client->depth;
	case '\n':
		/* Outside of braces it is not JSON, and ends what it is. */
		return !client->depth;
	default:
		return false;
	}
}

static bool vub_is_space(char c)
{
	return c == ' ' || c == '\t' || c == '\r' || c == '\n';
}

static void vub_client_take(struct vub_qmp_client *client, char c)
{
	bool complete;

	if (!client->nr_in && vub_is_space(c))
		return;
	client->in[client->nr_in++] = c;
	complete = vub_client_follow(client, c);
	if (!complete && client->nr_in < sizeof(client->in))
		return;
	vub_client_command(client);
	vub_client_reset(client);
}

static void vub_client_read(struct vub_qmp_client *client)
{
	char buf[VUB_QMP_READ];
	ssize_t done, i;

	done = recv(client->source.fd, buf, sizeof(buf), MSG_DONTWAIT);
	if (!done || (done < 0 && errno != EAGAIN && errno != EINTR))
		client->gone = true;
	for (i = 0; i < done && !client->gone; i++)
		vub_client_take(client, buf[i]);
}

static void vub_client_ready(struct vub_source *source, uint32_t events)
{
	struct vub_qmp_client *client =
		vub_container_of(source, struct vub_qmp_client, source);

	if (events & EPOLLOUT)
		vub_client_flush(client);
	if (events & ~(uint32_t)EPOLLOUT && !client->gone)
		vub_client_read(client);
	if (client->gone)
		vub_client_close(client);
}

static void vub_qmp_accept(struct vub_source *source, uint32_t events)
{
	struct vub_qmp *qmp = vub_container_of(source, struct vub_qmp,
					       listener);
	struct vub_qmp_client *client;
	int fd;

	(void)events;
	fd = accept4(source->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
	if (fd < 0)
		return;
	client = qmp->nr_clients < VUB_QMP_MAX_CLIENTS ?
		 calloc(1, sizeof(*client)) : NULL;
	if (!client) {
		close(fd);
		return;
	}
	client->qmp = qmp;
	client->source.ready = vub_client_ready;
	if (vub_loop_add(&qmp->dev->loop, &client->source, fd, EPOLLIN)) {
		close(fd);
		free(client);
		return;
	}
	client->next = qmp->clients;
	qmp->clients = client;
	qmp->nr_clients++;
	vub_client_greet(client);
}

static void vub_qmp_send_event(struct vub_qmp *qmp)
{
	struct vub_qmp_client *client;

	for (client = qmp->clients; client; client = client->next) {
		if (!client->negotiated)
			continue;
		vub_client_send_json(client,
				     json_pack("{s:{s:I,s:I},s:s,s:{s:I}}",
					       "timestamp", "seconds",
					       (json_int_t)qmp->changed.tv_sec,
					       "microseconds",
					       (json_int_t)qmp->changed.tv_usec,
					       "event", "BALLOON_CHANGE",
					       "data", "actual",
					       (json_int_t)qmp->actual));
	}
	qmp->event_due = false;
	vub_timer_set(&qmp->dev->loop, &qmp->event_timer,
		      vub_now() + VUB_QMP_EVENT_PAUSE);
}

static void vub_qmp_event_pause_over(struct vub_timer *timer)
{
	struct vub_qmp *qmp = vub_container_of(timer, struct vub_qmp,
					       event_timer);

	if (qmp->event_due)
		vub_qmp_send_event(qmp);
}

/**
 * vub_qmp_balloon_change() - the balloon's size has changed
 * @qmp: the socket
 *
 * Operators hear of the first change at once, then once a second with the time
 * of the change, and of the last one in any case, even when the guest is gone by then.
 */
void vub_qmp_balloon_change(struct vub_qmp *qmp)
{
	qmp->actual = vub_actual(qmp->dev);
	gettimeofday(&qmp->changed, NULL);
	if (qmp->event_timer.set)
		qmp->event_due = true;
	else
		vub_qmp_send_event(qmp);
}

/**
 * vub_qmp_open() - begin to serve operators
 * @qmp: the socket, all zeroes
 * @dev: the device
 * @listen_fd: the listening socket, taken over on success
 *
 * Return: 0 or a negative error.
 */
int vub_qmp_open(struct vub_qmp *qmp, struct vub_device *dev, int listen_fd)
{
	int err;

	qmp->dev = dev;
	qmp->listener.ready = vub_qmp_accept;
	qmp->event_timer.fire = vub_qmp_event_pause_over;
	err = vub_loop_add(&dev->loop, &qmp->listener, listen_fd, EPOLLIN);
	if (!err)
		dev->qmp = qmp;
	return err;
}

/**
 * vub_qmp_close() - disconnect all operators
 * @qmp: the socket; one that was not opened is fine
 */
void vub_qmp_close(struct vub_qmp *qmp)
{
	int fd = qmp->listener.fd;

	if (!qmp->dev)
		return;
	while (qmp->clients)
		vub_client_close(qmp->clients);
	vub_timer_cancel(&qmp->dev->loop, &qmp->event_timer);
	vub_loop_remove(&qmp->dev->loop, &qmp->listener);
	close(fd);
	qmp->dev->qmp = NULL;
}
