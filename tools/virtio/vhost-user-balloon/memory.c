// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * The guest's memory.
 *
 * Regions are mapped shared, for rings and payload. The VMM may truncate a file
 * under our feet, or the host may have no room for a page of it; the SIGBUS that
 * follows is turned into zeroes, and the connection ends after that
 * (vub_memory_fault()).
 *
 * Copyright (C) the project's developers
 */
#include <errno.h>
#include <linux/magic.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "log.h"
#include "memory.h"
#include "util.h"

/* What the signal handler has to know: our mappings, and whether it was used. */
static struct {
	uintptr_t start;
	uintptr_t end;
	uintptr_t page;
} vub_guarded[VUB_MAX_REGIONS];
static unsigned int vub_nr_guarded;
static bool vub_hurt;

static void vub_memory_signalled(int signum, siginfo_t *info, void *context)
{
	uintptr_t addr = (uintptr_t)info->si_addr;
	unsigned int nr = __atomic_load_n(&vub_nr_guarded, __ATOMIC_ACQUIRE), i;

	(void)context;
	for (i = 0; i < nr; i++) {
		uintptr_t page = vub_guarded[i].page;
		void *hole;

		if (addr < vub_guarded[i].start || addr >= vub_guarded[i].end)
			continue;
		hole = (void *)(addr - addr % page);
		if (mmap(hole, page, PROT_READ | PROT_WRITE,
			 MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0) !=
		    MAP_FAILED) {
			__atomic_store_n(&vub_hurt, true, __ATOMIC_RELAXED);
			return;
		}
	}
	/* Not the peer's doing: die of it, at the same instruction. */
	signal(signum, SIG_DFL);
}

/**
 * vub_memory_guard() - survive that pages of the guest's memory are not there
 *
 * Return: 0 or a negative error.
 */
int vub_memory_guard(void)
{
	struct sigaction action = {
		.sa_sigaction = vub_memory_signalled,
		.sa_flags = SA_SIGINFO,
	};

	return sigaction(SIGBUS, &action, NULL) ? -errno : 0;
}

/* Whether a region's file is not as long any more as it has to be. */
static bool vub_region_truncated(const struct vub_region *region)
{
	struct stat st;

	return fstat(region->fd, &st) ||
	       (uint64_t)st.st_size < region->offset + region->size;
}

/**
 * vub_memory_fault() - why memory was missing since the last call
 * @memory: the memory
 *
 * Return: NULL if none was, or words; what was read there is void.
 */
const char *vub_memory_fault(const struct vub_memory *memory)
{
	unsigned int i;

	if (!__atomic_exchange_n(&vub_hurt, false, __ATOMIC_RELAXED))
		return NULL;
	for (i = 0; i < memory->nr_regions; i++) {
		if (vub_region_truncated(&memory->region[i]))
			return "its memory was truncated";
	}
	return "the host had no page for its memory, or a broken one";
}

/* So many entries are valid for the signal handler. */
static void vub_memory_guard_only(unsigned int nr)
{
	__atomic_store_n(&vub_nr_guarded, nr, __ATOMIC_RELEASE);
}

static void vub_memory_watch(const struct vub_memory *memory)
{
	unsigned int i;

	vub_memory_guard_only(0);
	for (i = 0; i < memory->nr_regions; i++) {
		const struct vub_region *region = &memory->region[i];

		vub_guarded[i].start = (uintptr_t)region->map;
		vub_guarded[i].end = (uintptr_t)region->map + region->map_size;
		vub_guarded[i].page = region->grain;
	}
	vub_memory_guard_only(memory->nr_regions);
}

static bool vub_ranges_overlap(uint64_t a, uint64_t a_size, uint64_t b,
			       uint64_t b_size)
{
	return a < b + b_size && b < a + a_size;
}

/* Addresses and sizes, before anything is done with them. */
static int vub_region_check(const struct vub_memory *memory,
			    const struct vub_region *region)
{
	/* Everything below this can be added up without a second thought. */
	const uint64_t huge = UINT64_C(1) << 60;
	unsigned int i;

	if (!region->size || region->size % VUB_PFN_BYTES ||
	    region->guest_addr % VUB_PFN_BYTES ||
	    region->offset % VUB_PFN_BYTES || region->size > huge ||
	    region->guest_addr > huge || region->offset > huge ||
	    region->user_addr > UINT64_MAX - region->size) {
		vub_peer_warn("memory region refused: address, size or offset is absurd or not a multiple of 4 KiB");
		return -EINVAL;
	}
	for (i = 0; i < memory->nr_regions; i++) {
		if (vub_ranges_overlap(region->guest_addr, region->size,
				       memory->region[i].guest_addr,
				       memory->region[i].size)) {
			vub_peer_warn("memory region refused: two overlap");
			return -EINVAL;
		}
	}
	return 0;
}

/* What kind of file it is, and what it can be released by. */
static int vub_region_check_file(struct vub_region *region)
{
	struct stat st;
	struct statfs fs;

	if (fstat(region->fd, &st) || fstatfs(region->fd, &fs))
		return -errno;
	if (!S_ISREG(st.st_mode)) {
		vub_peer_warn("memory region refused: it is a device or a pipe, whose memory cannot be released; give the guest a shared memfd or a file on tmpfs");
		return -ENODEV;
	}
	if (vub_region_truncated(region)) {
		vub_peer_warn("memory region refused: its file is too short");
		return -EINVAL;
	}
	region->grain = (uint64_t)sysconf(_SC_PAGESIZE);
	if (fs.f_type == HUGETLBFS_MAGIC) {
		region->grain = (uint64_t)fs.f_bsize;
		vub_peer_warn("guest memory is hugetlb: only whole pages of %llu KiB can be released, so a guest that balloons single pages saves next to nothing",
			      (unsigned long long)region->grain / 1024);
	}
	return 0;
}

static int vub_region_map(struct vub_region *region)
{
	uint64_t start = vub_align_down(region->offset, region->grain);
	uint64_t end = region->offset + region->size;

	end = vub_align_down(end + region->grain - 1, region->grain);
	region->map_size = end - start;
	region->map = mmap(NULL, region->map_size, PROT_READ | PROT_WRITE,
			   MAP_SHARED | MAP_NORESERVE, region->fd,
			   (off_t)start);
	if (region->map == MAP_FAILED) {
		int err = -errno;

		vub_peer_warn("memory region refused: mapping it failed: %s",
			      strerror(-err));
		return err;
	}
	madvise(region->map, region->map_size, MADV_DONTDUMP);
	region->base = (char *)region->map + (region->offset - start);
	return 0;
}

/**
 * vub_memory_add() - take a region that the VMM shares
 * @memory: the memory
 * @region: addresses, size, offset and file; the file is taken over on success
 *
 * Return: 0 or a negative error; why was logged.
 */
int vub_memory_add(struct vub_memory *memory, const struct vub_region *region)
{
	struct vub_region *new = &memory->region[memory->nr_regions];
	int err;

	if (memory->nr_regions == VUB_MAX_REGIONS)
		return -ENOSPC;
	*new = *region;
	err = vub_region_check(memory, new);
	if (!err)
		err = vub_region_check_file(new);
	if (!err)
		err = vub_region_map(new);
	if (err)
		return err;
	memory->nr_regions++;
	return 0;
}

/**
 * vub_memory_settle() - begin to use the regions
 * @memory: the memory, with all regions added
 *
 * Return: 0, or -ENOMEM.
 */
int vub_memory_settle(struct vub_memory *memory)
{
	unsigned int i;

	vub_memory_watch(memory);
	vub_runs_clear(&memory->runs);
	for (i = 0; i < memory->nr_regions; i++) {
		const struct vub_region *region = &memory->region[i];
		uint64_t start = region->guest_addr >> VUB_PFN_SHIFT;
		uint64_t nr_pfns = region->size >> VUB_PFN_SHIFT;

		if (vub_runs_add(&memory->runs, start, start + nr_pfns))
			return -ENOMEM;
	}
	vub_runs_merge(&memory->runs);
	return 0;
}

/**
 * vub_memory_clear() - let go of all regions
 * @memory: the memory
 */
void vub_memory_clear(struct vub_memory *memory)
{
	unsigned int i;

	vub_memory_guard_only(0);
	for (i = 0; i < memory->nr_regions; i++) {
		munmap(memory->region[i].map, memory->region[i].map_size);
		close(memory->region[i].fd);
	}
	memory->nr_regions = 0;
	vub_runs_clear(&memory->runs);
}

/**
 * vub_memory_bytes() - how much memory there is
 * @memory: the memory
 *
 * Return: bytes.
 */
uint64_t vub_memory_bytes(const struct vub_memory *memory)
{
	uint64_t bytes = 0;
	unsigned int i;

	for (i = 0; i < memory->nr_regions; i++)
		bytes += memory->region[i].size;
	return bytes;
}

/**
 * vub_memory_region() - find the region of an address
 * @memory: the memory
 * @guest_addr: the address, as the guest sees it
 *
 * Return: the region, or NULL.
 */
const struct vub_region *vub_memory_region(const struct vub_memory *memory,
					   uint64_t guest_addr)
{
	unsigned int i;

	for (i = 0; i < memory->nr_regions; i++) {
		const struct vub_region *region = &memory->region[i];

		if (guest_addr >= region->guest_addr &&
		    guest_addr - region->guest_addr < region->size)
			return region;
	}
	return NULL;
}

/**
 * vub_memory_ring() - find a part of a ring
 * @memory: the memory
 * @user_addr: where it is, as the VMM sees it
 * @size: bytes of it
 *
 * Return: where it is for us, or NULL if it is not all in one region.
 */
void *vub_memory_ring(const struct vub_memory *memory, uint64_t user_addr,
		      uint64_t size)
{
	unsigned int i;

	for (i = 0; i < memory->nr_regions; i++) {
		const struct vub_region *region = &memory->region[i];
		uint64_t offset = user_addr - region->user_addr;

		if (user_addr < region->user_addr || offset >= region->size)
			continue;
		return size <= region->size - offset ? region->base + offset :
						       NULL;
	}
	return NULL;
}

/**
 * vub_memory_has() - whether the guest has a range
 * @memory: the memory
 * @guest_addr: where it begins
 * @size: bytes of it
 *
 * Return: true if all of it is memory.
 */
bool vub_memory_has(const struct vub_memory *memory, uint64_t guest_addr,
		    uint64_t size)
{
	while (size) {
		const struct vub_region *region;
		uint64_t here;

		region = vub_memory_region(memory, guest_addr);
		if (!region)
			return false;
		here = region->size - (guest_addr - region->guest_addr);
		here = vub_min(here, size);
		guest_addr += here;
		size -= here;
	}
	return true;
}

/**
 * vub_memory_read() - make a private copy
 * @memory: the memory
 * @guest_addr: what to copy, as the guest sees it
 * @buf: where to copy it to
 * @size: bytes
 *
 * Return: false if some of it is no memory.
 */
bool vub_memory_read(const struct vub_memory *memory, uint64_t guest_addr,
		     void *buf, size_t size)
{
	char *to = buf;

	while (size) {
		const struct vub_region *region;
		uint64_t offset, here;

		region = vub_memory_region(memory, guest_addr);
		if (!region)
			return false;
		offset = guest_addr - region->guest_addr;
		here = vub_min(region->size - offset, size);
		memcpy(to, region->base + offset, here);
		to += here;
		guest_addr += here;
		size -= here;
	}
	return true;
}
