/* Burst-level functions over the parts of DPDK that are static inline, and the layout facts that Rust needs. */
#ifndef DCP_SHIM_H
#define DCP_SHIM_H

#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <rte_version.h>
#include <rte_config.h>
#include <rte_mbuf.h>
#include <rte_ring.h>
#include <rte_telemetry.h>

/*
 * Where the fields of struct rte_mbuf are. DPDK moved them into and out of anonymous unions between 21.11 and 25.x, so a
 * bindgen path like `__bindgen_anon_3.pkt_len` would fit one release only; an offset fits all.
 */
enum {
	DCP_MBUF_SIZE = sizeof(struct rte_mbuf),
	DCP_MBUF_BUF_ADDR = offsetof(struct rte_mbuf, buf_addr),
	DCP_MBUF_DATA_OFF = offsetof(struct rte_mbuf, data_off),
	DCP_MBUF_REFCNT = offsetof(struct rte_mbuf, refcnt),
	DCP_MBUF_NB_SEGS = offsetof(struct rte_mbuf, nb_segs),
	DCP_MBUF_PORT = offsetof(struct rte_mbuf, port),
	DCP_MBUF_OL_FLAGS = offsetof(struct rte_mbuf, ol_flags),
	DCP_MBUF_PACKET_TYPE = offsetof(struct rte_mbuf, packet_type),
	DCP_MBUF_PKT_LEN = offsetof(struct rte_mbuf, pkt_len),
	DCP_MBUF_DATA_LEN = offsetof(struct rte_mbuf, data_len),
	DCP_MBUF_BUF_LEN = offsetof(struct rte_mbuf, buf_len),
	DCP_MBUF_POOL = offsetof(struct rte_mbuf, pool),
	DCP_MBUF_NEXT = offsetof(struct rte_mbuf, next),
	DCP_MBUF_TX_OFFLOAD = offsetof(struct rte_mbuf, tx_offload),
	DCP_MBUF_SHINFO = offsetof(struct rte_mbuf, shinfo),
#if RTE_VERSION < RTE_VERSION_NUM(22, 11, 0, 0)
	DCP_MBUF_HAS_IOVA = 1,
#elif defined(RTE_IOVA_IN_MBUF)
	DCP_MBUF_HAS_IOVA = RTE_IOVA_IN_MBUF,
#else
	DCP_MBUF_HAS_IOVA = RTE_IOVA_AS_PA,
#endif
	/* The field behind buf_addr; only meaningful when DCP_MBUF_HAS_IOVA. */
	DCP_MBUF_BUF_IOVA = sizeof(void *),
};

/* Flags of rte_mbuf.ol_flags. The macros are casts and shifts that bindgen cannot evaluate. */
static const uint64_t DCP_MBUF_F_EXTERNAL = 1ULL << 61;
static const uint64_t DCP_MBUF_F_INDIRECT = 1ULL << 62;

/* Flags of rte_ring_create. */
static const uint32_t DCP_RING_F_SP_ENQ = 0x0001;
static const uint32_t DCP_RING_F_SC_DEQ = 0x0002;
static const uint32_t DCP_RING_F_EXACT_SZ = 0x0004;

/* Offloads of a device: frames in several segments. */
static const uint64_t DCP_TX_OFFLOAD_MULTI_SEGS = 1ULL << 15;
static const uint64_t DCP_RX_OFFLOAD_SCATTER = 1ULL << 13;

int dcpshim_errno(void);
const char *dcpshim_dpdk_version(void);

/* Index of the calling thread among DPDK's lcores, or UINT32_MAX when DPDK does not know the thread. */
uint32_t dcpshim_lcore_id(void);

/* A copy of the first len bytes, from the pool of the first segment; NULL when that is empty. */
struct rte_mbuf *dcpshim_copy_head(const struct rte_mbuf *mbuf, uint32_t len);

uint16_t dcpshim_rx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
uint16_t dcpshim_tx_burst(uint16_t port, uint16_t queue, struct rte_mbuf **mbufs, uint16_t count);
int dcpshim_link_is_up(uint16_t port);

/* All or nothing: 0, or a negative errno. */
int dcpshim_alloc_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t count);
/* The same without resetting their fields: for who sets those that matter. */
int dcpshim_alloc_bare_bulk(struct rte_mempool *pool, struct rte_mbuf **mbufs, uint32_t count);
/*
 * Frees whole chains. Keeps two pools' worth of pending puts, since our chains alternate header and payload pools: those of
 * the first frame's pool in `mbufs` itself, whose content is arbitrary afterwards.
 */
void dcpshim_free_bulk(struct rte_mbuf **mbufs, uint32_t count);

uint32_t dcpshim_ring_dequeue_burst(struct rte_ring *ring, void **objects, uint32_t count);
uint32_t dcpshim_ring_count(const struct rte_ring *ring);
uint32_t dcpshim_ring_free_count(const struct rte_ring *ring);

/*
 * Frames freed per lcore: a cache line each, so that a thread registered with DPDK counts with a plain load and store.
 * The last one is for all threads that DPDK does not know, and is counted atomically.
 */
struct dcpshim_free_slot {
	uint64_t freed;
	uint64_t pad[7];
};
enum { DCP_FREE_SLOTS = RTE_MAX_LCORE + 1 };

/* The callback of an external buffer: counts one frame in the `struct dcpshim_free_slot[DCP_FREE_SLOTS]` behind `slots`. */
void dcpshim_count_free(void *addr, void *slots);

/* Numbers in telemetry's answers: DPDK 23.03 gave these functions and the array's type other names. */
int dcpshim_tel_start_numbers(struct rte_tel_data *data);
int dcpshim_tel_add_number(struct rte_tel_data *data, uint64_t number);
int dcpshim_tel_add_field(struct rte_tel_data *data, const char *name, uint64_t number);
int dcpshim_tel_start_texts(struct rte_tel_data *data);

/* A stream for rte_openlog_stream that keeps a bounded head of the log in memory. NULL when out of memory. */
FILE *dcpshim_log_open(void);
/* Moves what was logged since the last call to `text` (at most `size` bytes) and returns how many bytes that was. */
size_t dcpshim_log_take(FILE *stream, char *text, size_t size);
/* Flushes the C library's stdout and stderr. */
void dcpshim_flush_stdio(void);

#endif
