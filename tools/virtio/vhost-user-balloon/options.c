// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The command line.
 *
 * Copyright (C) the project's developers
 */
#include <ctype.h>
#include <errno.h>
#include <getopt.h>
#include <linux/virtio_config.h>
#include <linux/virtio_ring.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "device.h"
#include "options.h"
#include "protocol.h"
#include "util.h"
#include "version.h"

enum {
	VUB_OPT_HELP = 256,
	VUB_OPT_VERSION,
	VUB_OPT_PRINT_CAPABILITIES,
	VUB_OPT_SOCKET_PATH,
	VUB_OPT_FD,
	VUB_OPT_QMP,
	VUB_OPT_ID,
	VUB_OPT_RAM_SIZE,
	VUB_OPT_POLL_INTERVAL,
	VUB_OPT_LOG_LEVEL,
	VUB_OPT_RECONNECT,
	VUB_OPT_IN_BAND,
	VUB_OPT_RELEASE,
	VUB_OPT_RELEASE_GRAIN,
	VUB_OPT_QUEUE_LAYOUT,
	VUB_OPT_TEST_COMMANDS,
	VUB_OPT_SANDBOX,
	VUB_OPT_FEATURE,	/* and as many more as there are features */
};

/* Virtio features that can be turned on and off, and whether they are on. */
static const struct {
	const char *option;
	unsigned int bit;
	bool on;
} vub_features[] = {
	{ "must-tell-host", VIRTIO_BALLOON_F_MUST_TELL_HOST, false },
	{ "stats", VIRTIO_BALLOON_F_STATS_VQ, true },
	{ "deflate-on-oom", VIRTIO_BALLOON_F_DEFLATE_ON_OOM, true },
	{ "free-page-hint", VIRTIO_BALLOON_F_FREE_PAGE_HINT, false },
	{ "page-poison", VIRTIO_BALLOON_F_PAGE_POISON, true },
	{ "free-page-reporting", VIRTIO_BALLOON_F_REPORTING, true },
	{ "page-bitmap", VIRTIO_BALLOON_F_PAGE_BITMAP, true },
	{ "indirect-desc", VIRTIO_RING_F_INDIRECT_DESC, true },
	{ "event-idx", VIRTIO_RING_F_EVENT_IDX, true },
};

#define VUB_NR_FEATURES	VUB_ARRAY_SIZE(vub_features)

static const struct option vub_plain_options[] = {
	{ "help", no_argument, NULL, VUB_OPT_HELP },
	{ "version", no_argument, NULL, VUB_OPT_VERSION },
	{ "print-capabilities", no_argument, NULL, VUB_OPT_PRINT_CAPABILITIES },
	{ "socket-path", required_argument, NULL, VUB_OPT_SOCKET_PATH },
	{ "fd", required_argument, NULL, VUB_OPT_FD },
	{ "qmp", required_argument, NULL, VUB_OPT_QMP },
	{ "id", required_argument, NULL, VUB_OPT_ID },
	{ "ram-size", required_argument, NULL, VUB_OPT_RAM_SIZE },
	{ "poll-interval", required_argument, NULL, VUB_OPT_POLL_INTERVAL },
	{ "log-level", required_argument, NULL, VUB_OPT_LOG_LEVEL },
	{ "reconnect", optional_argument, NULL, VUB_OPT_RECONNECT },
	{ "in-band", optional_argument, NULL, VUB_OPT_IN_BAND },
	{ "release", required_argument, NULL, VUB_OPT_RELEASE },
	{ "release-grain", required_argument, NULL, VUB_OPT_RELEASE_GRAIN },
	{ "queue-layout", required_argument, NULL, VUB_OPT_QUEUE_LAYOUT },
	{ "test-commands", optional_argument, NULL, VUB_OPT_TEST_COMMANDS },
	{ "sandbox", optional_argument, NULL, VUB_OPT_SANDBOX },
};

#define VUB_NR_PLAIN	VUB_ARRAY_SIZE(vub_plain_options)

static const char vub_usage[] =
"Usage: vhost-user-balloon --socket-path=PATH [--qmp=PATH] [OPTION]...\n"
"A memory balloon for one virtual machine, served over vhost-user.\n"
"\n"
"  --socket-path=PATH       where the VMM connects to\n"
"  --fd=N                   the same, as an inherited descriptor\n"
"  --qmp=PATH               where operators connect to\n"
"  --id=NAME                the device's name in QMP paths (balloon0)\n"
"  --ram-size=SIZE          memory of the guest (what the VMM shares)\n"
"  --poll-interval=SECONDS  how often statistics are asked for (0: never)\n"
"  --log-level=LEVEL        error, warning, info or debug (info)\n"
"  --reconnect[=on|off]     wait for the next guest when one is gone (off)\n"
"  --in-band[=on|off]       offer notifications as messages (off)\n"
"  --release=run|page       release whole runs, or page by page (run)\n"
"  --release-grain=SIZE     release nothing smaller than that\n"
"  --queue-layout=dense|spec\n"
"                           how queues are numbered (dense)\n"
"  --sandbox[=on|off]       give up what is not needed after start (on)\n"
"  --test-commands[=on|off] take orders to misbehave (off)\n"
"  --print-capabilities     what installers want to know, as JSON\n"
"  --version, --help\n"
"\n"
"Features of the device, each --NAME[=on|off]:\n";

static void vub_print_usage(void)
{
	unsigned int i;

	fputs(vub_usage, stdout);
	for (i = 0; i < VUB_NR_FEATURES; i++)
		printf("  --%-22s (%s)\n", vub_features[i].option,
		       vub_features[i].on ? "on" : "off");
	puts("\nSIZE may end in K, M, G or T. See vhost-user-balloon(1).");
}

static int vub_parse_switch(const char *text, bool *on)
{
	if (!text || !strcmp(text, "on"))
		*on = true;
	else if (!strcmp(text, "off"))
		*on = false;
	else
		return -EINVAL;
	return 0;
}

static int vub_parse_number(const char *text, uint64_t max, uint64_t *value,
			    char **end)
{
	/* strtoull() would take a sign. */
	if (*text < '0' || *text > '9')
		return -EINVAL;
	errno = 0;
	*value = strtoull(text, end, 0);
	return errno || *value > max ? -EINVAL : 0;
}

static int vub_parse_size(const char *text, uint64_t *size)
{
	static const char units[] = "KMGT";
	const char *unit;
	char *end;
	unsigned int shift;

	if (vub_parse_number(text, UINT64_MAX, size, &end))
		return -EINVAL;
	if (!*end)
		return 0;
	unit = strchr(units, toupper((unsigned char)*end));
	if (!unit || end[1])
		return -EINVAL;
	shift = 10 * (unsigned int)(unit - units + 1);
	if (*size > UINT64_MAX >> shift)
		return -EINVAL;
	*size <<= shift;
	return 0;
}

static int vub_parse_plain_number(const char *text, uint64_t max,
				  uint64_t *value)
{
	char *end;

	return vub_parse_number(text, max, value, &end) || *end ? -EINVAL : 0;
}

/* One of two words. */
static int vub_parse_choice(const char *text, const char *no, const char *yes,
			    bool *is_yes)
{
	if (strcmp(text, no) && strcmp(text, yes))
		return -EINVAL;
	*is_yes = !strcmp(text, yes);
	return 0;
}

static int vub_parse_ram_size(struct vub_options *options, const char *text)
{
	/* num_pages has 32 bits. */
	const uint64_t max = (uint64_t)UINT32_MAX << VUB_PFN_SHIFT;
	int err = vub_parse_size(text, &options->ram_size);

	if (err || options->ram_size % VUB_PFN_BYTES ||
	    options->ram_size > max || !options->ram_size)
		return -EINVAL;
	return 0;
}

static int vub_parse_grain(struct vub_options *options, const char *text)
{
	int err = vub_parse_size(text, &options->grain);

	if (err || options->grain < VUB_PFN_BYTES ||
	    options->grain & (options->grain - 1))
		return -EINVAL;
	return 0;
}

static int vub_parse_fd(struct vub_options *options, const char *text)
{
	uint64_t value;

	if (vub_parse_plain_number(text, INT32_MAX, &value))
		return -EINVAL;
	options->fd = (int)value;
	return 0;
}

static int vub_parse_poll_interval(struct vub_options *options,
				   const char *text)
{
	uint64_t value;

	if (vub_parse_plain_number(text, UINT32_MAX, &value))
		return -EINVAL;
	options->poll_interval = (uint32_t)value;
	return 0;
}

static int vub_parse_layout(struct vub_options *options, const char *text)
{
	bool spec;

	if (vub_parse_choice(text, "dense", "spec", &spec))
		return -EINVAL;
	options->layout = spec ? VUB_LAYOUT_SPEC : VUB_LAYOUT_DENSE;
	return 0;
}

static int vub_parse_feature(struct vub_options *options, unsigned int i,
			     const char *text)
{
	uint64_t mask = VUB_BIT(vub_features[i].bit);
	bool on;

	if (vub_parse_switch(text, &on))
		return -EINVAL;
	options->features = on ? options->features | mask :
				 options->features & ~mask;
	return 0;
}

static int vub_parse_path(const char *text, const char **path)
{
	*path = text;
	return *text ? 0 : -EINVAL;
}

static int vub_parse_option(struct vub_options *options, int option,
			    const char *text)
{
	switch (option) {
	case VUB_OPT_SOCKET_PATH:
		return vub_parse_path(text, &options->socket_path);
	case VUB_OPT_FD:
		return vub_parse_fd(options, text);
	case VUB_OPT_QMP:
		return vub_parse_path(text, &options->qmp_path);
	case VUB_OPT_ID:
		options->id = text;
		return *text && !strchr(text, '/') ? 0 : -EINVAL;
	case VUB_OPT_RAM_SIZE:
		return vub_parse_ram_size(options, text);
	case VUB_OPT_POLL_INTERVAL:
		return vub_parse_poll_interval(options, text);
	case VUB_OPT_LOG_LEVEL:
		return vub_log_parse_level(text, &options->log_level);
	case VUB_OPT_RECONNECT:
		return vub_parse_switch(text, &options->reconnect);
	case VUB_OPT_IN_BAND:
		return vub_parse_switch(text, &options->in_band);
	case VUB_OPT_RELEASE:
		return vub_parse_choice(text, "run", "page", &options->by_page);
	case VUB_OPT_RELEASE_GRAIN:
		return vub_parse_grain(options, text);
	case VUB_OPT_QUEUE_LAYOUT:
		return vub_parse_layout(options, text);
	case VUB_OPT_TEST_COMMANDS:
		return vub_parse_switch(text, &options->test_commands);
	case VUB_OPT_SANDBOX:
		return vub_parse_switch(text, &options->sandbox);
	default:
		return vub_parse_feature(options,
					 (unsigned int)(option - VUB_OPT_FEATURE),
					 text);
	}
}

static void vub_options_default(struct vub_options *options)
{
	unsigned int i;

	*options = (struct vub_options){
		.fd = -1,
		.id = "balloon0",
		.log_level = VUB_INFO,
		.sandbox = true,
		.features = VUB_BIT(VIRTIO_F_VERSION_1) |
			    VUB_BIT(VUB_F_PROTOCOL_FEATURES),
	};
	for (i = 0; i < VUB_NR_FEATURES; i++) {
		if (vub_features[i].on)
			options->features |= VUB_BIT(vub_features[i].bit);
	}
}

static void vub_options_table(struct option *table)
{
	unsigned int i;

	memcpy(table, vub_plain_options, sizeof(vub_plain_options));
	table += VUB_NR_PLAIN;
	for (i = 0; i < VUB_NR_FEATURES; i++)
		*table++ = (struct option){ vub_features[i].option,
					    optional_argument, NULL,
					    (int)(VUB_OPT_FEATURE + i) };
	*table = (struct option){ 0 };
}

static enum vub_parsed vub_options_check(const struct vub_options *options,
					 int argc, char **argv)
{
	if (optind < argc)
		fprintf(stderr, "vhost-user-balloon: '%s' is no option; see --help\n",
			argv[optind]);
	else if (!options->socket_path == (options->fd < 0))
		fputs("vhost-user-balloon: one of --socket-path and --fd is needed; see --help\n",
		      stderr);
	else if (options->socket_path && options->qmp_path &&
		 !strcmp(options->socket_path, options->qmp_path))
		fputs("vhost-user-balloon: --qmp needs a path of its own; see --help\n",
		      stderr);
	else
		return VUB_RUN;
	return VUB_BAD;
}

/* Options that print something and end; VUB_RUN for all others. */
static enum vub_parsed vub_options_print(int option)
{
	switch (option) {
	case VUB_OPT_HELP:
		vub_print_usage();
		return VUB_DONE;
	case VUB_OPT_VERSION:
		printf("vhost-user-balloon %d.%d.%d\n", VUB_VERSION_MAJOR,
		       VUB_VERSION_MINOR, VUB_VERSION_MICRO);
		return VUB_DONE;
	case VUB_OPT_PRINT_CAPABILITIES:
		puts("{\"type\": \"balloon\"}");
		return VUB_DONE;
	case '?':
		return VUB_BAD;
	default:
		return VUB_RUN;
	}
}

/**
 * vub_options_parse() - read the command line
 * @options: where it goes
 * @argc: as main() got it
 * @argv: as main() got it
 *
 * Return: what to do.
 */
enum vub_parsed vub_options_parse(struct vub_options *options, int argc,
				  char **argv)
{
	struct option table[VUB_NR_PLAIN + VUB_NR_FEATURES + 1];
	enum vub_parsed parsed;
	int option, which;

	vub_options_default(options);
	vub_options_table(table);
	for (;;) {
		option = getopt_long(argc, argv, "", table, &which);
		if (option < 0)
			return vub_options_check(options, argc, argv);
		parsed = vub_options_print(option);
		if (parsed != VUB_RUN)
			return parsed;
		if (!vub_parse_option(options, option, optarg))
			continue;
		fprintf(stderr, "vhost-user-balloon: --%s cannot be '%s'; see --help\n",
			table[which].name, optarg);
		return VUB_BAD;
	}
}
