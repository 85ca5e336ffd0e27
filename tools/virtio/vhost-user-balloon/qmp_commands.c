// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The operators' commands. Names, arguments and what they return are QEMU's, so
 * that tools made for QEMU work; the rest begins with "query-balloon-device".
 *
 * Copyright (C) the project's developers
 */
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "qmp.h"
#include "util.h"
#include "version.h"

#define VUB_MAX_ARGS	8

struct vub_command {
	const char *name;
	const char *args[VUB_MAX_ARGS];
	void (*execute)(struct vub_qmp_client *client, const json_t *args,
			struct vub_reply *reply);
	bool test;
};

static const struct vub_command vub_commands[];

/**
 * vub_reply_error() - a command has failed
 * @reply: what comes of it
 * @error_class: "GenericError", or what clients know better
 * @format: as for printf(): what is wrong
 */
void vub_reply_error(struct vub_reply *reply, const char *error_class,
		     const char *format, ...)
{
	va_list args;

	reply->error_class = error_class;
	va_start(args, format);
	reply->error_desc = json_vsprintf(format, args);
	va_end(args);
}

/**
 * vub_reply_nothing() - a command has worked, and there is nothing to tell
 * @reply: what comes of it
 */
void vub_reply_nothing(struct vub_reply *reply)
{
	reply->value = json_object();
}

/**
 * vub_arg_int() - read a number
 * @args: a command's arguments
 * @name: the number's name
 * @min: the least that it may be
 * @max: the most that it may be
 * @value: where it goes
 * @reply: what comes of the command: an error if the number is not right
 *
 * Return: true if it is.
 */
bool vub_arg_int(const json_t *args, const char *name, json_int_t min,
		 json_int_t max, json_int_t *value, struct vub_reply *reply)
{
	const json_t *arg = json_object_get(args, name);

	if (json_is_integer(arg)) {
		*value = json_integer_value(arg);
		if (*value >= min && *value <= max)
			return true;
	}
	vub_reply_error(reply, "GenericError",
			"'%s' has to be a number from %" JSON_INTEGER_FORMAT
			" to %" JSON_INTEGER_FORMAT, name, min, max);
	return false;
}

static const char *vub_arg_string(const json_t *args, const char *name,
				  struct vub_reply *reply)
{
	const char *value = json_string_value(json_object_get(args, name));

	if (!value)
		vub_reply_error(reply, "GenericError",
				"'%s' has to be a string", name);
	return value;
}

/**
 * vub_qmp_version() - what a client sees as our version
 *
 * Return: an object of QEMU's shape.
 */
json_t *vub_qmp_version(void)
{
	return json_pack("{s:{s:i,s:i,s:i},s:s}", "qemu", "major",
			 VUB_VERSION_MAJOR, "minor", VUB_VERSION_MINOR,
			 "micro", VUB_VERSION_MICRO, "package",
			 "vhost-user-balloon");
}

static void vub_cmd_capabilities(struct vub_qmp_client *client,
				 const json_t *args, struct vub_reply *reply)
{
	const json_t *enable = json_object_get(args, "enable");

	if (enable && (!json_is_array(enable) || json_array_size(enable))) {
		vub_reply_error(reply, "GenericError",
				"there are no capabilities to enable");
		return;
	}
	client->negotiated = true;
	vub_reply_nothing(reply);
}

/* Whether it is known how much memory the guest has. */
static bool vub_guest_known(const struct vub_device *dev,
			    struct vub_reply *reply)
{
	if (vub_device_ram(dev))
		return true;
	vub_reply_error(reply, "DeviceNotActive",
			"there is no guest yet, and no --ram-size that says how large it will be");
	return false;
}

static void vub_cmd_balloon(struct vub_qmp_client *client, const json_t *args,
			    struct vub_reply *reply)
{
	struct vub_device *dev = client->qmp->dev;
	json_int_t value;

	if (!vub_guest_known(dev, reply) ||
	    !vub_arg_int(args, "value", 1, INT64_MAX, &value, reply))
		return;
	vub_set_target(dev, (uint64_t)value);
	vub_reply_nothing(reply);
}

static void vub_cmd_query_balloon(struct vub_qmp_client *client,
				  const json_t *args, struct vub_reply *reply)
{
	struct vub_device *dev = client->qmp->dev;

	(void)args;
	if (vub_guest_known(dev, reply))
		reply->value = json_pack("{s:I}", "actual",
					 (json_int_t)vub_actual(dev));
}

/* Whether a QOM path means our device: /machine/peripheral/ID, or its end. */
static bool vub_path_is_ours(const struct vub_device *dev, const char *path)
{
	const char *last = strrchr(path, '/');

	return !strcmp(last ? last + 1 : path, dev->options->id);
}

/* The property that a command is about; NULL, with an error, if not ours. */
static const char *vub_arg_property(const struct vub_device *dev,
				    const json_t *args, struct vub_reply *reply)
{
	const char *path = vub_arg_string(args, "path", reply);

	if (!path)
		return NULL;
	if (!vub_path_is_ours(dev, path)) {
		vub_reply_error(reply, "DeviceNotFound",
				"there is no '%s', only /machine/peripheral/%s",
				path, dev->options->id);
		return NULL;
	}
	return vub_arg_string(args, "property", reply);
}

/*
 * Figures that the guest has not given are 2^64 - 1 with QEMU, which jansson's
 * signed numbers cannot express; so this is text.
 */
static char *vub_guest_stats_text(const struct vub_stats *stats)
{
	/* As QEMU calls them, which is not in all what the UAPI does. */
	static const char *const names[] = {
		"stat-swap-in", "stat-swap-out", "stat-major-faults",
		"stat-minor-faults", "stat-free-memory", "stat-total-memory",
		"stat-available-memory", "stat-disk-caches",
		"stat-htlb-pgalloc", "stat-htlb-pgfail", "stat-oom-kills",
		"stat-alloc-stalls", "stat-async-scans", "stat-direct-scans",
		"stat-async-reclaims", "stat-direct-reclaims",
	};
	char *text = NULL;
	size_t size;
	FILE *out = open_memstream(&text, &size);
	unsigned int i;

	if (!out)
		return NULL;
	fprintf(out, "{\"last-update\": %llu, \"stats\": {",
		(unsigned long long)stats->last_update);
	for (i = 0; i < VUB_ARRAY_SIZE(names); i++)
		fprintf(out, "%s\"%s\": %llu", i ? ", " : "", names[i],
			(unsigned long long)stats->val[i]);
	fprintf(out, "}}");
	if (fclose(out)) {
		free(text);
		return NULL;
	}
	return text;
}

static void vub_cmd_qom_get(struct vub_qmp_client *client, const json_t *args,
			    struct vub_reply *reply)
{
	struct vub_device *dev = client->qmp->dev;
	const char *property = vub_arg_property(dev, args, reply);

	if (!property)
		return;
	if (!strcmp(property, "guest-stats")) {
		reply->text = vub_guest_stats_text(&dev->stats);
		if (!reply->text)
			vub_reply_error(reply, "GenericError", "out of memory");
	} else if (!strcmp(property, "guest-stats-polling-interval")) {
		reply->value = json_integer(dev->stats.interval);
	} else {
		vub_reply_error(reply, "GenericError",
				"there is no property '%s'", property);
	}
}

static void vub_cmd_qom_set(struct vub_qmp_client *client, const json_t *args,
			    struct vub_reply *reply)
{
	struct vub_device *dev = client->qmp->dev;
	const char *property = vub_arg_property(dev, args, reply);
	json_int_t value;

	if (!property)
		return;
	if (strcmp(property, "guest-stats-polling-interval")) {
		vub_reply_error(reply, "GenericError",
				"there is no property '%s' that can be set",
				property);
		return;
	}
	if (!vub_arg_int(args, "value", 0, UINT32_MAX, &value, reply))
		return;
	vub_stats_set_interval(dev, (uint32_t)value);
	vub_reply_nothing(reply);
}

static bool vub_command_offered(const struct vub_device *dev,
				const struct vub_command *command)
{
	return !command->test || dev->options->test_commands;
}

static void vub_cmd_query_commands(struct vub_qmp_client *client,
				   const json_t *args, struct vub_reply *reply)
{
	const struct vub_command *command;
	json_t *list = json_array();

	(void)args;
	for (command = vub_commands; command->name; command++) {
		if (vub_command_offered(client->qmp->dev, command))
			json_array_append_new(list,
					      json_pack("{s:s}", "name",
							command->name));
	}
	reply->value = list;
}

static void vub_cmd_query_version(struct vub_qmp_client *client,
				  const json_t *args, struct vub_reply *reply)
{
	(void)client;
	(void)args;
	reply->value = vub_qmp_version();
}

static void vub_cmd_quit(struct vub_qmp_client *client, const json_t *args,
			 struct vub_reply *reply)
{
	(void)args;
	client->qmp->dev->loop.stop = true;
	vub_reply_nothing(reply);
}

static void vub_cmd_query_device(struct vub_qmp_client *client,
				 const json_t *args, struct vub_reply *reply)
{
	(void)args;
	reply->value = vub_qmp_device(client->qmp->dev);
}

static void vub_cmd_hints(struct vub_qmp_client *client, const json_t *args,
			  struct vub_reply *reply)
{
	struct vub_device *dev = client->qmp->dev;
	const char *action = vub_arg_string(args, "action", reply);

	if (!action)
		return;
	if (!(dev->offered & VUB_BIT(VIRTIO_BALLOON_F_FREE_PAGE_HINT))) {
		vub_reply_error(reply, "GenericError",
				"free page hints are off: start with --free-page-hint");
		return;
	}
	if (!strcmp(action, "start")) {
		vub_hints_start(dev);
	} else if (!strcmp(action, "stop")) {
		vub_hints_end(dev, VIRTIO_BALLOON_CMD_ID_STOP);
	} else if (!strcmp(action, "done")) {
		vub_hints_end(dev, VIRTIO_BALLOON_CMD_ID_DONE);
	} else {
		vub_reply_error(reply, "GenericError",
				"'action' has to be start, stop or done");
		return;
	}
	vub_reply_nothing(reply);
}

static void vub_cmd_misbehave(struct vub_qmp_client *client, const json_t *args,
			      struct vub_reply *reply)
{
	vub_qmp_misbehave(client->qmp->dev, args, reply);
}

static const struct vub_command vub_commands[] = {
	{ "qmp_capabilities", { "enable" }, vub_cmd_capabilities, false },
	{ "balloon", { "value" }, vub_cmd_balloon, false },
	{ "query-balloon", { NULL }, vub_cmd_query_balloon, false },
	{ "qom-get", { "path", "property" }, vub_cmd_qom_get, false },
	{ "qom-set", { "path", "property", "value" }, vub_cmd_qom_set, false },
	{ "query-commands", { NULL }, vub_cmd_query_commands, false },
	{ "query-version", { NULL }, vub_cmd_query_version, false },
	{ "quit", { NULL }, vub_cmd_quit, false },
	{ "query-balloon-device", { NULL }, vub_cmd_query_device, false },
	{ "balloon-free-page-hint", { "action" }, vub_cmd_hints, false },
	{ "x-balloon-misbehave",
	  { "kind", "queue", "count", "ms", "serial", "field", "value" },
	  vub_cmd_misbehave, true },
	{ NULL, { NULL }, NULL, false },
};

static const struct vub_command *vub_command_find(const struct vub_device *dev,
						  const char *name)
{
	const struct vub_command *command;

	for (command = vub_commands; command->name; command++) {
		if (!strcmp(command->name, name) &&
		    vub_command_offered(dev, command))
			return command;
	}
	return NULL;
}

static bool vub_command_has_arg(const struct vub_command *command,
				const char *name)
{
	unsigned int i;

	for (i = 0; i < VUB_MAX_ARGS && command->args[i]; i++) {
		if (!strcmp(command->args[i], name))
			return true;
	}
	return false;
}

/* An argument that the command does not have; NULL if there is none. */
static const char *vub_unknown_arg(const struct vub_command *command,
				   const json_t *args)
{
	const char *key;
	json_t *value;

	json_object_foreach((json_t *)args, key, value) {
		if (!vub_command_has_arg(command, key))
			return key;
	}
	return NULL;
}

/**
 * vub_qmp_execute() - execute a command
 * @client: whose it is
 * @name: its name
 * @args: its arguments, an object or NULL
 * @reply: what comes of it
 */
void vub_qmp_execute(struct vub_qmp_client *client, const char *name,
		     const json_t *args, struct vub_reply *reply)
{
	const struct vub_command *command;
	const char *unknown;
	bool negotiates;

	command = vub_command_find(client->qmp->dev, name);
	if (!command) {
		vub_reply_error(reply, "CommandNotFound",
				"there is no command '%s'", name);
		return;
	}
	negotiates = command->execute == vub_cmd_capabilities;
	if (client->negotiated == negotiates) {
		vub_reply_error(reply, "CommandNotFound",
				client->negotiated ?
				"capabilities were negotiated already" :
				"the first command has to be qmp_capabilities");
		return;
	}
	unknown = vub_unknown_arg(command, args);
	if (unknown) {
		vub_reply_error(reply, "GenericError",
				"'%s' has no argument '%s'", name, unknown);
		return;
	}
	command->execute(client, args, reply);
}
