// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Config space (virtio specification, section 5.5.4), and the two figures that
 * it is about: how large the balloon should be, and how large it is.
 *
 * Copyright (C) the project's developers
 */
#include <endian.h>
#include <string.h>

#include "conn.h"
#include "device.h"
#include "qmp.h"
#include "util.h"

/* Where a field is. */
#define VUB_FIELD(name)		offsetof(struct virtio_balloon_config, name)

static void vub_config_encode(const struct vub_device *dev,
			      struct virtio_balloon_config *config)
{
	uint32_t field[VUB_CONFIG_FIELDS] = {
		vub_num_pages(dev),
		dev->config.actual,
		dev->config.cmd_id,
		dev->config.poison_val,
	};
	unsigned int i;

	for (i = 0; i < VUB_CONFIG_FIELDS; i++) {
		if (dev->lie[i].on)
			field[i] = dev->lie[i].value;
		field[i] = htole32(field[i]);
	}
	memcpy(config, field, sizeof(*config));
}

/**
 * vub_config_read() - read from config space
 * @dev: the device
 * @offset: where to begin
 * @buf: where it goes
 * @size: bytes
 *
 * Return: false if config space is smaller than that.
 */
bool vub_config_read(const struct vub_device *dev, uint32_t offset, void *buf,
		     uint32_t size)
{
	struct virtio_balloon_config config;

	if (offset > sizeof(config) || size > sizeof(config) - offset)
		return false;
	vub_config_encode(dev, &config);
	memcpy(buf, (char *)&config + offset, size);
	return true;
}

/* Whether a write has all of a field, and what it is then. */
static bool vub_config_field(uint32_t field, uint32_t offset, const char *buf,
			     uint32_t size, uint32_t *value)
{
	if (offset > field || offset + size < field + sizeof(*value))
		return false;
	memcpy(value, buf + (field - offset), sizeof(*value));
	*value = le32toh(*value);
	return true;
}

static void vub_config_set_actual(struct vub_device *dev, uint32_t actual)
{
	uint64_t ram_pfns = vub_device_ram(dev) >> VUB_PFN_SHIFT;

	if (actual > ram_pfns) {
		vub_reject(dev, VUB_REJECT_ACTUAL);
		vub_peer_warn("the guest says that its balloon is larger than the guest itself: %u pages of %llu",
			      actual, (unsigned long long)ram_pfns);
		actual = (uint32_t)ram_pfns;
	}
	if (actual == dev->config.actual)
		return;
	dev->config.actual = actual;
	if (dev->qmp)
		vub_qmp_balloon_change(dev->qmp);
}

/**
 * vub_config_write() - the driver writes to config space
 * @dev: the device
 * @offset: where it begins
 * @buf: what it writes
 * @size: bytes
 *
 * Some VMMs write all of it, with what they once read: only the driver's own
 * fields are taken.
 *
 * Return: false if config space is smaller than that.
 */
bool vub_config_write(struct vub_device *dev, uint32_t offset, const void *buf,
		      uint32_t size)
{
	const uint32_t max = sizeof(struct virtio_balloon_config);
	uint32_t value;

	if (offset > max || size > max - offset)
		return false;
	if (vub_config_field(VUB_FIELD(actual), offset, buf, size, &value))
		vub_config_set_actual(dev, value);
	if (vub_config_field(VUB_FIELD(poison_val), offset, buf, size, &value))
		dev->config.poison_val = value;
	return true;
}

/**
 * vub_config_changed() - tell the driver to read config space again
 * @dev: the device
 */
void vub_config_changed(struct vub_device *dev)
{
	if (dev->conn)
		vub_conn_config_changed(dev->conn);
}

/**
 * vub_config_reset() - config space as a driver finds it
 * @dev: the device; the balloon is empty then
 */
void vub_config_reset(struct vub_device *dev)
{
	vub_config_set_actual(dev, 0);
	dev->config.poison_val = 0;
	dev->config.cmd_id = VIRTIO_BALLOON_CMD_ID_STOP;
}

/**
 * vub_num_pages() - how large the balloon should be
 * @dev: the device
 *
 * Return: what is more than the target, in units of 4 KiB; 0 while it is not
 * known how much memory the guest has.
 */
uint32_t vub_num_pages(const struct vub_device *dev)
{
	uint64_t ram = vub_device_ram(dev);
	uint64_t give_up = ram - vub_min(ram, dev->target);

	return (uint32_t)vub_min(give_up >> VUB_PFN_SHIFT, UINT32_MAX);
}

/**
 * vub_set_target() - choose how much memory the guest should keep
 * @dev: the device
 * @bytes: how much; more than a guest has means all of it
 */
void vub_set_target(struct vub_device *dev, uint64_t bytes)
{
	dev->target = bytes;
	vub_config_changed(dev);
}

/**
 * vub_actual() - how much memory the guest has
 * @dev: the device
 *
 * Return: bytes.
 */
uint64_t vub_actual(const struct vub_device *dev)
{
	uint64_t ram = vub_device_ram(dev);
	uint64_t given_up = (uint64_t)dev->config.actual << VUB_PFN_SHIFT;

	return ram - vub_min(ram, given_up);
}
