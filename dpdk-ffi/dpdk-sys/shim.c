/* See shim.h. Nothing here decides anything: each function is a static inline of DPDK at burst granularity. */
#define _GNU_SOURCE
#include <stdbool.h>
#include <string.h>

#include <rte_errno.h>
#include <rte_ethdev.h>
#include <rte_lcore.h>
#include <rte_mempool.h>

#include "shim.h"

_Static_assert(RTE_MBUF_F_EXTERNAL == 1ULL << 61, "flag moved: fix DCP_MBUF_F_EXTERNAL");
_Static_assert(RTE_MBUF_F_INDIRECT == 1ULL << 62, "flag moved: fix DCP_MBUF_F_INDIRECT");
_Static_assert(RING_F_SP_ENQ == 1 && RING_F_SC_DEQ == 2 && RING_F_EXACT_SZ == 4, "flag moved: fix DCP_RING_F_*");
_Static_assert(RTE_ETH_TX_OFFLOAD_MULTI_SEGS == 1ULL << 15, "flag moved: fix DCP_TX_OFFLOAD_MULTI_SEGS");
_Static_assert(RTE_ETH_RX_OFFLOAD_SCATTER == 1ULL << 13, "flag moved: fix DCP_RX_OFFLOAD_SCATTER");
_Static_assert(sizeof(struct dcpshim_free_slot) == 64, "one cache line per slot");
_Static_assert(sizeof(((struct rte_mbuf *)0)->refcnt) == 2, "mbuf.refcnt is read as u16");
_Static_assert(DCP_MBUF_REFCNT == DCP_MBUF_DATA_OFF + 2 && DCP_MBUF_NB_SEGS == DCP_MBUF_DATA_OFF + 4 &&
	       DCP_MBUF_PORT == DCP_MBUF_DATA_OFF + 6, "four fields are written at once");

int dcpshim_errno(void)
{
	return rte_errno;
}

const char *dcpshim_dpdk_version(void)
{
	return rte_version();
}

uint32_t dcpshim_lcore_id(void)
{
	return rte_lcore_id();
}

struct rte_mbuf *dcpshim_copy_head(const struct rte_mbuf *mbuf, uint32_t len)
{
	return rte_pktmbuf_copy(mbuf, mbuf->pool, 0, len);
}

uint16_t dcpshim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_rx_burst(port, queue, mbufs, count);
}

uint16_t dcpshim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count)
{
	return rte_eth_tx_burst(port, queue, mbufs, count);
}

int dcpshim_link_is_up(uint16_t port)
{
	struct rte_eth_link link;

	memset(&link, 0, sizeof(link));
	if (rte_eth_link_get_nowait(port, &link) != 0)
		return 0;
	return link.link_status == RTE_ETH_LINK_UP;
}

int dcpshim_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t count)
{
	return rte_pktmbuf_alloc_bulk(pool, mbufs, count);
}

int dcpshim_alloc_bare_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t count)
{
	return rte_mempool_get_bulk(pool, (void **)mbufs, count);
}

static inline void count_freed(struct dcpshim_free_slot *slots, unsigned int lcore, uint64_t count)
{
	/* Release: who sees the count may unmap the buffer, so our last use of it comes first. */
	if (likely(lcore < RTE_MAX_LCORE)) {
		uint64_t freed = __atomic_load_n(&slots[lcore].freed, __ATOMIC_RELAXED);

		__atomic_store_n(&slots[lcore].freed, freed + count, __ATOMIC_RELEASE);
	} else {
		__atomic_fetch_add(&slots[RTE_MAX_LCORE].freed, count, __ATOMIC_RELEASE);
	}
}

void dcpshim_count_free(void *addr, void *slots)
{
	(void)addr;
	count_freed(slots, rte_lcore_id(), 1);
}

/* Segments of one region that were freed but not counted yet: it keeps its counters, and its memory, until they are. */
struct uncounted {
	struct dcpshim_free_slot *slots;
	uint64_t count;
	unsigned int lcore;
};

static inline void count_all(struct uncounted *u)
{
	if (u->count != 0)
		count_freed(u->slots, u->lcore, u->count);
	u->count = 0;
}

/* Frame heads are direct mbufs with one reference: what rte_pktmbuf_prefree_seg does with such ones. */
static inline bool is_plain(const struct rte_mbuf *m)
{
	return (m->ol_flags & (RTE_MBUF_F_EXTERNAL | RTE_MBUF_F_INDIRECT)) == 0 && rte_mbuf_refcnt_read(m) == 1;
}

/*
 * What rte_pktmbuf_prefree_seg does, with the usual case of a segment in a region made short: no call through the
 * callback, and no restoring of a data room that a payload pool does not have. Such an mbuf goes back with a buffer of no
 * bytes, which is what a payload pool's always has; it was no head, so it counts no segments.
 */
static inline struct rte_mbuf *release(struct rte_mbuf *m, struct uncounted *u)
{
	if (likely((m->ol_flags & RTE_MBUF_F_EXTERNAL) != 0 && rte_mbuf_refcnt_read(m) == 1 &&
		   m->shinfo->free_cb == dcpshim_count_free && rte_mbuf_ext_refcnt_read(m->shinfo) == 1)) {
		struct dcpshim_free_slot *slots = m->shinfo->fcb_opaque;

		if (unlikely(slots != u->slots)) {
			count_all(u);
			u->slots = slots;
		}
		u->count++;
		m->ol_flags = 0;
		m->buf_len = 0;
		m->next = NULL;
		return m;
	}
	return rte_pktmbuf_prefree_seg(m);
}

enum { PENDING_MAX = 64 };

void dcpshim_free_bulk(struct rte_mbuf **mbufs, uint32_t count)
{
	struct uncounted u = {.lcore = rte_lcore_id()};
	/* Segments of any pool but the heads'; another pool's evict them. */
	void *pending[PENDING_MAX];
	struct rte_mempool *pending_pool = NULL;
	uint32_t pending_count = 0;
	struct rte_mempool *pool;
	uint32_t kept = 0;
	uint32_t i;

	if (count == 0)
		return;
	pool = mbufs[0]->pool;
	for (i = 0; i < count; i++) {
		struct rte_mbuf *m = mbufs[i];
		struct rte_mbuf *next = m->next;

		if (likely(is_plain(m) && m->pool == pool)) {
			m->next = NULL;
			m->nb_segs = 1;
			/* Never ahead of i. */
			mbufs[kept++] = m;
			m = next;
		}
		while (m != NULL) {
			struct rte_mbuf *ours;

			next = m->next;
			ours = release(m, &u);
			m = next;
			if (unlikely(ours == NULL))
				continue;
			if (unlikely(ours->pool != pending_pool || pending_count == PENDING_MAX)) {
				if (pending_count != 0)
					rte_mempool_put_bulk(pending_pool, pending, pending_count);
				pending_pool = ours->pool;
				pending_count = 0;
			}
			pending[pending_count++] = ours;
		}
	}
	count_all(&u);
	if (kept != 0)
		rte_mempool_put_bulk(pool, (void **)mbufs, kept);
	if (pending_count != 0)
		rte_mempool_put_bulk(pending_pool, pending, pending_count);
}

uint32_t dcpshim_ring_dequeue_burst(struct rte_ring *ring, void **objects, uint32_t count)
{
	return rte_ring_dequeue_burst(ring, objects, count, NULL);
}

uint32_t dcpshim_ring_count(const struct rte_ring *ring)
{
	return rte_ring_count(ring);
}

uint32_t dcpshim_ring_free_count(const struct rte_ring *ring)
{
	return rte_ring_free_count(ring);
}

int dcpshim_tel_start_texts(struct rte_tel_data *data)
{
	return rte_tel_data_start_array(data, RTE_TEL_STRING_VAL);
}

#if RTE_VERSION >= RTE_VERSION_NUM(23, 3, 0, 0)
int dcpshim_tel_start_numbers(struct rte_tel_data *data)
{
	return rte_tel_data_start_array(data, RTE_TEL_UINT_VAL);
}

int dcpshim_tel_add_number(struct rte_tel_data *data, uint64_t number)
{
	return rte_tel_data_add_array_uint(data, number);
}

int dcpshim_tel_add_field(struct rte_tel_data *data, const char *name, uint64_t number)
{
	return rte_tel_data_add_dict_uint(data, name, number);
}
#else
int dcpshim_tel_start_numbers(struct rte_tel_data *data)
{
	return rte_tel_data_start_array(data, RTE_TEL_U64_VAL);
}

int dcpshim_tel_add_number(struct rte_tel_data *data, uint64_t number)
{
	return rte_tel_data_add_array_u64(data, number);
}

int dcpshim_tel_add_field(struct rte_tel_data *data, const char *name, uint64_t number)
{
	return rte_tel_data_add_dict_u64(data, name, number);
}
#endif

/* The log: the first LOG_MAX bytes since the last take. The lock of the FILE guards it. */
enum { LOG_MAX = 64 * 1024 };
static char log_text[LOG_MAX];
static size_t log_len;

static ssize_t log_write(void *cookie, const char *text, size_t size)
{
	size_t room = LOG_MAX - log_len;
	size_t taken = size < room ? size : room;

	(void)cookie;
	memcpy(log_text + log_len, text, taken);
	log_len += taken;
	return (ssize_t)size;
}

FILE *dcpshim_log_open(void)
{
	cookie_io_functions_t functions = {.write = log_write};

	return fopencookie(NULL, "w", functions);
}

size_t dcpshim_log_take(FILE *stream, char *text, size_t size)
{
	size_t taken;

	fflush(stream);
	flockfile(stream);
	taken = log_len < size ? log_len : size;
	memcpy(text, log_text, taken);
	log_len = 0;
	funlockfile(stream);
	return taken;
}

void dcpshim_flush_stdio(void)
{
	fflush(stdout);
	fflush(stderr);
}
