// SPDX-License-Identifier: GPL-2.0-or-later
/*
 * Chunks: where the balloon's memory comes from and goes to.
 *
 * Blocks of a pageblock and more stay whole. They come from non-movable
 * allocation, because nothing can move them, and fragment nothing, because
 * they are whole pageblocks. Smaller blocks are only a quick way to many
 * single pages: they are split at once, and compaction can move the pieces.
 *
 * Blocks are tried without reclaim or compaction. Single pages may reclaim.
 *
 * Copyright (C) the project's developers
 */
#include <linux/gfp.h>
#include <linux/list_sort.h>
#include <linux/mm.h>

#include "balloon.h"
#include "policy.h"

#define VB_GFP_QUICK	(__GFP_NORETRY | __GFP_NOWARN | __GFP_NOMEMALLOC)

/**
 * vb_chunk_order() - order of a chunk
 * @page: first page of a chunk that is not on the movable list
 *
 * Return: log2 of its guest pages.
 */
unsigned int vb_chunk_order(const struct page *page)
{
	return page_private(page);
}

/**
 * vb_chunk_pages() - size of a chunk
 * @page: first page of a chunk that is not on the movable list
 *
 * Return: guest pages.
 */
unsigned long vb_chunk_pages(const struct page *page)
{
	return 1ul << vb_chunk_order(page);
}

/**
 * vb_order_is_large() - whether blocks of an order stay whole
 * @order: the order
 *
 * Where the pageblock's size is a variable, modules do not get to see it.
 *
 * Return: true if they do.
 */
bool vb_order_is_large(unsigned int order)
{
#ifdef CONFIG_HUGETLB_PAGE_SIZE_VARIABLE
	return order >= MAX_PAGE_ORDER;
#else
	return order >= pageblock_order;
#endif
}

/**
 * vb_chunk_mark() - a chunk's pages have no content that anybody wants
 * @page: the chunk
 *
 * Until vb_chunks_free(), kdump and hibernation leave every page of it out.
 */
void vb_chunk_mark(struct page *page)
{
	unsigned long i, nr_pages = vb_chunk_pages(page);

	for (i = 0; i < nr_pages; i++)
		__SetPageOffline(page + i);
}

/**
 * vb_chunk_split() - make single pages of a chunk
 * @page: the chunk, on no list
 * @chunks: they go to the end of this list
 */
void vb_chunk_split(struct page *page, struct list_head *chunks)
{
	unsigned int order = vb_chunk_order(page);
	unsigned long i;

	split_page(page, order);
	for (i = 0; i < 1ul << order; i++) {
		set_page_private(page + i, 0);
		list_add_tail(&page[i].lru, chunks);
	}
}

static struct page *vb_block_alloc(unsigned int order)
{
	gfp_t gfp = balloon_mapping_gfp_mask();

	if (!order)
		return balloon_page_alloc();
	if (vb_order_is_large(order))
		gfp &= ~__GFP_MOVABLE;
	return alloc_pages((gfp & ~__GFP_RECLAIM) | VB_GFP_QUICK, order);
}

/**
 * vb_chunks_alloc() - get memory for the balloon
 * @vb: the balloon; vb->alloc_order falls when larger blocks have run out
 * @chunks: where new chunks go, in state held but not counted yet
 * @nr_pages: guest pages wanted
 *
 * Context: process context, may sleep, no lock held.
 * Stops early when the host has changed its mind: reclaim can take long.
 *
 * Return: guest pages that were had, up to @nr_pages; 0 when there is nothing
 * that the guest can spare.
 */
unsigned long vb_chunks_alloc(struct vb *vb, struct list_head *chunks,
			      unsigned long nr_pages)
{
	unsigned long got = 0;

	while (got < nr_pages && !(got && vb_mind_changed(vb))) {
		unsigned int order = vb_pick_order(nr_pages - got,
						   vb->alloc_order);
		struct page *page = vb_block_alloc(order);

		if (!page && !order)
			break;
		if (!page) {
			vb->alloc_order = order - 1;
			continue;
		}
		if (!vb_by_bitmap(vb) &&
		    !vb_pfn_fits(page_to_pfn(page), 1ul << order)) {
			__free_pages(page, order);
			break;
		}
		set_page_private(page, order);
		vb_chunk_mark(page);
		if (order && !vb_order_is_large(order))
			vb_chunk_split(page, chunks);
		else
			list_add_tail(&page->lru, chunks);
		got += 1ul << order;
	}
	return got;
}

static int vb_chunk_cmp(void *priv, const struct list_head *a,
			const struct list_head *b)
{
	return page_to_pfn(list_entry(a, struct page, lru)) >
	       page_to_pfn(list_entry(b, struct page, lru));
}

/**
 * vb_chunks_sort() - put chunks in the order of their addresses
 * @chunks: the chunks
 *
 * Hosts merge neighbours, and windows of the bitmap are short.
 */
void vb_chunks_sort(struct list_head *chunks)
{
	list_sort(NULL, chunks, vb_chunk_cmp);
}

/**
 * vb_chunks_free() - give chunks back to the page allocator
 * @chunks: chunks that nobody else knows of any more
 */
void vb_chunks_free(struct list_head *chunks)
{
	struct page *page, *next;
	unsigned int order;
	unsigned long i;

	list_for_each_entry_safe(page, next, chunks, lru) {
		order = vb_chunk_order(page);
		list_del(&page->lru);
		set_page_private(page, 0);
		for (i = 0; i < 1ul << order; i++)
			__ClearPageOffline(page + i);
		__free_pages(page, order);
	}
}

/* Compaction may hold the page lock for a moment: then the page stays put. */
static bool vb_page_make_movable(struct vb *vb, struct page *page)
{
	unsigned long flags;

	if (!IS_ENABLED(CONFIG_BALLOON_COMPACTION) || !trylock_page(page))
		return false;
	spin_lock_irqsave(&vb->bdi.pages_lock, flags);
	balloon_page_insert(&vb->bdi, page);
	spin_unlock_irqrestore(&vb->bdi.pages_lock, flags);
	unlock_page(page);
	return true;
}

/**
 * vb_chunk_leaves() - whether memory that a chunk is in is about to be unplugged
 * @vb: the balloon, locked
 * @page: the chunk
 *
 * Return: true if it is.
 */
bool vb_chunk_leaves(const struct vb *vb, const struct page *page)
{
	unsigned long pfn = page_to_pfn(page);

	return pfn < vb->leaving_end &&
	       pfn + vb_chunk_pages(page) > vb->leaving_start;
}

/* Pieces of a chunk go where single pages are. */
static void vb_chunk_insert_pieces(struct vb *vb, struct page *page)
{
	LIST_HEAD(pieces);

	vb_chunk_split(page, &pieces);
	vb_chunks_insert(vb, &pieces);
}

static void vb_chunk_insert(struct vb *vb, struct page *page)
{
	if (vb_chunk_order(page) && vb_chunk_leaves(vb, page))
		vb_chunk_insert_pieces(vb, page);
	else if (vb_chunk_order(page))
		list_add(&page->lru, &vb->large);
	else if (!vb_page_make_movable(vb, page))
		list_add(&page->lru, &vb->fixed);
}

/**
 * vb_chunks_insert() - put chunks on the lists that their kinds of inflated have
 * @vb: the balloon, locked
 * @chunks: the chunks; none is left here
 *
 * In front; they are taken from behind, so that they come out in the order that they
 * went in.
 */
void vb_chunks_insert(struct vb *vb, struct list_head *chunks)
{
	struct page *page, *next;

	lockdep_assert_held(&vb->lock);

	list_for_each_entry_safe(page, next, chunks, lru) {
		list_del(&page->lru);
		vb_chunk_insert(vb, page);
	}
}

static struct page *vb_movable_remove(struct vb *vb)
{
	struct page *page, *found = NULL;
	unsigned long flags;

	spin_lock_irqsave(&vb->bdi.pages_lock, flags);
	list_for_each_entry_reverse(page, &vb->bdi.pages, lru) {
		if (!trylock_page(page))
			continue;
		list_del(&page->lru);
		balloon_page_finalize(page);
		vb_chunk_mark(page);
		unlock_page(page);
		found = page;
		break;
	}
	spin_unlock_irqrestore(&vb->bdi.pages_lock, flags);
	return found;
}

static struct page *vb_list_pop(struct list_head *chunks)
{
	struct page *page;

	if (list_empty(chunks))
		return NULL;
	page = list_last_entry(chunks, struct page, lru);
	list_del(&page->lru);
	return page;
}

/*
 * Take a chunk of up to @nr_pages, at least 1, off its list. Large ones go first:
 * they are quickest to give back and most useful to the guest. One that is too
 * large goes to pieces only if @may_split and no single page is left. Pages that
 * compaction moves right now are not there for anybody.
 */
static struct page *vb_chunk_remove(struct vb *vb, unsigned long nr_pages,
				    bool may_split)
{
	struct page *page;

	lockdep_assert_held(&vb->lock);

	page = vb_list_pop(&vb->large);
	if (page && vb_chunk_pages(page) <= nr_pages)
		return page;
	if (page)
		list_add_tail(&page->lru, &vb->large);

	page = vb_list_pop(&vb->fixed);
	if (!page)
		page = vb_movable_remove(vb);
	if (page)
		return page;

	page = may_split ? vb_list_pop(&vb->large) : NULL;
	if (!page)
		return NULL;
	vb_chunk_insert_pieces(vb, page);
	page = vb_list_pop(&vb->fixed);
	return page ?: vb_movable_remove(vb);
}

/* Without deflate on OOM, MemTotal is what the guest can really have. */
static void vb_adjust_managed(struct vb *vb, struct page *page, long nr_pages)
{
	if (!virtio_has_feature(vb->vdev, VIRTIO_BALLOON_F_DEFLATE_ON_OOM))
		adjust_managed_page_count(page, nr_pages);
}

/**
 * vb_account_enter() - a chunk becomes the host's
 * @vb: the balloon, locked
 * @page: the chunk
 * @migration: it takes another one's place
 */
void vb_account_enter(struct vb *vb, struct page *page, bool migration)
{
	unsigned long nr_pages = vb_chunk_pages(page);

	vb->nr[VB_INFLATED] += nr_pages;
	vb_adjust_managed(vb, page, -(long)nr_pages);
	if (!migration)
		count_vm_events(BALLOON_INFLATE, nr_pages);
}

/**
 * vb_account_leave() - a chunk is taken from what the host has
 * @vb: the balloon, locked
 * @page: the chunk
 * @migration: another one takes its place
 */
void vb_account_leave(struct vb *vb, struct page *page, bool migration)
{
	unsigned long nr_pages = vb_chunk_pages(page);

	vb->nr[VB_INFLATED] -= nr_pages;
	vb_adjust_managed(vb, page, nr_pages);
	if (!migration)
		count_vm_events(BALLOON_DEFLATE, nr_pages);
}

/**
 * vb_chunks_take() - take inflated chunks off their lists
 * @vb: the balloon, locked
 * @nr_pages: guest pages wanted, at most
 * @chunks: where they go; vb_account_leave() and vb_chunks_insert() are up to the
 *	    caller
 *
 * No chunk goes to pieces as long as the caller gets something whole.
 *
 * Return: guest pages taken; 0 if none can be taken now.
 */
unsigned long vb_chunks_take(struct vb *vb, unsigned long nr_pages,
			     struct list_head *chunks)
{
	unsigned long done = 0;
	struct page *page;

	lockdep_assert_held(&vb->lock);

	while (done < nr_pages &&
	       (page = vb_chunk_remove(vb, nr_pages - done, !done))) {
		done += vb_chunk_pages(page);
		list_add_tail(&page->lru, chunks);
	}
	return done;
}

/**
 * vb_reported_remove() - take a chunk from what the host has by the reporting queue
 * @vb: the balloon, locked
 * @page: the chunk, on vb->reported
 * @chunks: where it goes
 */
void vb_reported_remove(struct vb *vb, struct page *page,
			struct list_head *chunks)
{
	vb_account_leave(vb, page, false);
	vb->nr_reported -= vb_chunk_pages(page);
	list_move_tail(&page->lru, chunks);
}

/**
 * vb_reported_leave() - take chunks from what the host has by the reporting queue
 * @vb: the balloon, locked
 * @nr_pages: guest pages wanted, at most
 * @chunks: where they go
 *
 * The host need not be told: it has treated them as free memory. No chunk goes to pieces
 * as long as the caller gets something whole.
 *
 * Return: guest pages taken; 0 only if there are none.
 */
unsigned long vb_reported_leave(struct vb *vb, unsigned long nr_pages,
				struct list_head *chunks)
{
	unsigned long done = 0;
	struct page *page;

	lockdep_assert_held(&vb->lock);

	while (done < nr_pages && !list_empty(&vb->reported)) {
		page = list_last_entry(&vb->reported, struct page, lru);
		if (vb_chunk_pages(page) > nr_pages - done) {
			if (done)
				break;
			list_del(&page->lru);
			vb_chunk_split(page, &vb->reported);
			continue;
		}
		done += vb_chunk_pages(page);
		vb_reported_remove(vb, page, chunks);
	}
	return done;
}

/**
 * vb_chunks_leave() - take inflated chunks from what the host has
 * @vb: the balloon, locked
 * @nr_pages: guest pages wanted, at most
 * @chunks: where they go
 *
 * Return: guest pages taken; 0 if none can be taken now.
 */
unsigned long vb_chunks_leave(struct vb *vb, unsigned long nr_pages,
			      struct list_head *chunks)
{
	unsigned long done = vb_reported_leave(vb, nr_pages, chunks);
	LIST_HEAD(taken);
	struct page *page;

	done += vb_chunks_take(vb, nr_pages - done, &taken);
	list_for_each_entry(page, &taken, lru)
		vb_account_leave(vb, page, false);
	list_splice_tail(&taken, chunks);
	return done;
}
