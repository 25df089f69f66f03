/*
 * DCP: an RDMA-like transport in user space, on DPDK. The C interface.
 *
 * Names and meanings are close to libibverbs; docs/C-API.md says where they differ. Written by cbindgen from
 * transport/capi/src: do not edit.
 *
 * Functions that return an int return 0 or a count, or a negative error number of errno.h; those that return a pointer
 * return NULL and set errno. dcp_last_error() then has a sentence for people. NULL, a handle of the wrong kind and a
 * number out of range are refused. A handle that was given back already cannot be known, and must not be passed.
 *
 * Threads: every function may be called from any thread, at the same time as any other, on the same objects too, unless
 * its comment says otherwise; "serialised" means that calls on one object wait for each other. What must never be is
 * that a handle is given back while another thread passes it.
 *
 * Structures: those that begin with `size` may grow. Set it to sizeof of the structure. The library takes what an older
 * program leaves out as zero, and refuses what it does not know unless it is zero. `reserved` members must be zero.
 */

#ifndef DCP_H
#define DCP_H

#include <stddef.h>
#include <stdint.h>
#define DCP_VERSION_NUMBER(major, minor, patch) (((major) << 16) | ((minor) << 8) | (patch))
/* Version of this header; compare with dcp_version(), the library's. */
#define DCP_VERSION DCP_VERSION_NUMBER(DCP_VERSION_MAJOR, DCP_VERSION_MINOR, DCP_VERSION_PATCH)


/// Major version of this header. While it is 0, a new minor version may break programs.
#define DCP_VERSION_MAJOR 0

/// Minor version of this header.
#define DCP_VERSION_MINOR 1

/// Patch of this header.
#define DCP_VERSION_PATCH 0

/// Rights to a memory region, or-ed. Reading locally is always allowed.
typedef enum dcp_access {
  /// Own receives, READs and atomics may put their bytes here.
  DCP_ACCESS_LOCAL_WRITE = 1,
  /// Peers may WRITE.
  DCP_ACCESS_REMOTE_WRITE = 2,
  /// Peers may READ.
  DCP_ACCESS_REMOTE_READ = 4,
  /// Peers may run atomics.
  DCP_ACCESS_REMOTE_ATOMIC = 8,
} dcp_access;

/// Whether DPDK's memory is to be huge pages.
typedef enum dcp_huge_pages {
  /// When enough are free.
  DCP_HUGE_AUTO = 0,
  /// Ordinary pages.
  DCP_HUGE_NEVER = 1,
  /// Huge pages, or dcp_open fails.
  DCP_HUGE_REQUIRE = 2,
} dcp_huge_pages;

/// For dcp_start_workers, or-ed.
typedef enum dcp_workers_flags {
  /// An idle worker keeps polling: for cores that are kept free for it. Otherwise it yields, then sleeps up to 1 ms.
  DCP_WORKERS_SPIN = 1,
} dcp_workers_flags;

/// What a send work request does.
typedef enum dcp_wr_opcode {
  /// RDMA WRITE.
  DCP_WR_RDMA_WRITE = 0,
  /// RDMA WRITE that consumes a receive of the peer's and hands it `imm_data`.
  DCP_WR_RDMA_WRITE_WITH_IMM = 1,
  /// SEND to a receive of the peer's.
  DCP_WR_SEND = 2,
  /// SEND with `imm_data`.
  DCP_WR_SEND_WITH_IMM = 3,
  /// RDMA READ into `sg_list`.
  DCP_WR_RDMA_READ = 4,
  /// If the 8 bytes at the peer's are `compare_add`, they become `swap`. The value before lands in `sg_list`.
  DCP_WR_ATOMIC_CMP_AND_SWP = 5,
  /// Adds `compare_add` to 8 bytes at the peer's. The value before lands in `sg_list`.
  DCP_WR_ATOMIC_FETCH_AND_ADD = 6,
} dcp_wr_opcode;

/// Flags of a send work request, or-ed.
typedef enum dcp_send_flags {
  /// Waits for everything before it, answers included.
  DCP_SEND_FENCE = 1,
  /// Success makes a completion. Failure always does.
  DCP_SEND_SIGNALED = 2,
  /// Marks the receive's completion at the peer.
  DCP_SEND_SOLICITED = 4,
  /// The bytes, at most 1024, are copied now, from any memory: `lkey` is ignored. Not for READ and atomics.
  DCP_SEND_INLINE = 8,
} dcp_send_flags;

/// Outcome of a work request.
typedef enum dcp_wc_status {
  /// Done.
  DCP_WC_SUCCESS = 0,
  /// A local buffer does not fit its message.
  DCP_WC_LOC_LEN_ERR = 1,
  /// A local buffer lies outside its region, or its key is wrong.
  DCP_WC_LOC_PROT_ERR = 4,
  /// Not tried: the queue pair went to the error state before.
  DCP_WC_WR_FLUSH_ERR = 5,
  /// The peer says that the request breaks a rule.
  DCP_WC_REM_INV_REQ_ERR = 9,
  /// The peer refuses the access to its memory.
  DCP_WC_REM_ACCESS_ERR = 10,
  /// The peer failed.
  DCP_WC_REM_OP_ERR = 11,
  /// The peer did not answer after all retries.
  DCP_WC_RETRY_EXC_ERR = 12,
  /// The peer had no receive posted after all retries.
  DCP_WC_RNR_RETRY_EXC_ERR = 13,
} dcp_wc_status;

/// What a completed work request was.
typedef enum dcp_wc_opcode {
  /// SEND, with or without immediate.
  DCP_WC_SEND = 0,
  /// RDMA WRITE, with or without immediate.
  DCP_WC_RDMA_WRITE = 1,
  /// RDMA READ.
  DCP_WC_RDMA_READ = 2,
  /// Atomic compare and swap.
  DCP_WC_COMP_SWAP = 3,
  /// Atomic fetch and add.
  DCP_WC_FETCH_ADD = 4,
  /// A receive that a SEND filled. Receives have this bit.
  DCP_WC_RECV = 128,
  /// A receive that a WRITE with immediate consumed.
  DCP_WC_RECV_RDMA_WITH_IMM = 129,
} dcp_wc_opcode;

/// Flags of a completion, or-ed.
typedef enum dcp_wc_flags {
  /// `imm_data` is valid.
  DCP_WC_WITH_IMM = 2,
  /// The sender asked for a solicited event.
  DCP_WC_SOLICITED = 4,
} dcp_wc_flags;

/// State of a queue pair.
typedef enum dcp_qp_state {
  /// Takes nothing.
  DCP_QPS_RESET = 0,
  /// Takes receives: a queue pair begins here.
  DCP_QPS_INIT = 1,
  /// Also answers the peer.
  DCP_QPS_RTR = 2,
  /// Connected.
  DCP_QPS_RTS = 3,
  /// Failed or closed: everything completes as flushed.
  DCP_QPS_ERR = 6,
} dcp_qp_state;

/// What a connected queue pair has beside it: the peer's memory, and a channel that tells when the peer ends.
typedef struct dcp_conn dcp_conn;

/// An open device with its workers.
typedef struct dcp_context dcp_context;

/// A completion queue.
typedef struct dcp_cq dcp_cq;

/// Waits for connections on a TCP port.
typedef struct dcp_listener dcp_listener;

/// A registered memory region.
typedef struct dcp_mr dcp_mr;

/// A protection domain: what memory the queue pairs in it, and their peers, may touch.
typedef struct dcp_pd dcp_pd;

/// A reliable connection's end.
typedef struct dcp_qp dcp_qp;

/// How to open a device. Whatever is zero has its default.
typedef struct dcp_options {
  /// sizeof(struct dcp_options).
  uint32_t size;
  /// Its IPv4 address, in reading order. Default only for dcp_open_pair: 10.0.0.1 and 10.0.0.2.
  uint8_t ip[4];
  /// Workers: of a pair each has queues of its own, else the first has the device's and hands frames over to the others
  /// and from them. Default 1.
  uint32_t workers;
  /// Payload of a full packet, 256 to 8192. Default: the largest power of two that it carries, up to 4096.
  uint32_t mtu;
  /// UDP port of the first worker; the others follow. Default 17791.
  uint16_t service_port;
  /// Zero.
  uint16_t reserved;
  /// Mbufs of each kind and worker. Default 8191.
  uint32_t mbufs;
  /// Queue pairs per worker. Default 4096.
  uint32_t qps_max;
  /// Posts that a worker has not looked at yet. Default 4096.
  uint32_t posts_max;
  /// Memory for all of DPDK in MiB, of the first device opened in the process. Default 256.
  uint32_t memory_mib;
  /// Its pages, a dcp_huge_pages; of the first device, too.
  uint32_t huge_pages;
  /// Milliseconds that dcp_open waits for the device's link, for memif: for the peer. Default 10000.
  uint32_t link_wait_ms;
  /// IPv4 address of the router to other networks. Default: none.
  uint8_t gateway[4];
  /// Ethernet address to use instead of the device's own. Default: the device's.
  uint8_t mac[6];
  /// Bits of `ip` that name its network, 1 to 32. Default 24.
  uint8_t prefix_len;
  /// 1: DPDK's telemetry socket is opened, of the first device in the process; docs/TELEMETRY.md. Default 0.
  uint8_t telemetry;
} dcp_options;

/// What a device counted since it was opened, summed over its workers.
typedef struct dcp_stats {
  /// sizeof(struct dcp_stats).
  uint32_t size;
  /// Zero.
  uint32_t reserved;
  /// Data packets sent, resent ones included.
  uint64_t data_packets;
  /// Payload bytes in them.
  uint64_t data_bytes;
  /// Data packets that had been sent before.
  uint64_t retransmitted;
  /// Data packets received.
  uint64_t data_received;
  /// Header-only packets sent back to the peer.
  uint64_t ho_bounced;
  /// Own header-only packets that came back.
  uint64_t ho_returned;
  /// Coarse timeouts.
  uint64_t timeouts;
  /// Frames dropped as the protocol demands.
  uint64_t dropped;
  /// Frames received.
  uint64_t frames_received;
  /// Frames sent.
  uint64_t frames_sent;
} dcp_stats;

/// A completion.
typedef struct dcp_wc {
  /// As posted.
  uint64_t wr_id;
  /// Outcome, a dcp_wc_status.
  uint32_t status;
  /// What it was, a dcp_wc_opcode.
  uint32_t opcode;
  /// Bytes of the message.
  uint32_t byte_len;
  /// Immediate data if wc_flags says so, in the machine's byte order.
  uint32_t imm_data;
  /// Number of the queue pair it was posted to.
  uint32_t qp_num;
  /// Of dcp_wc_flags, or-ed.
  uint32_t wc_flags;
  /// Zero.
  uint32_t reserved[4];
} dcp_wc;

/// Parameters of a queue pair: begin with dcp_qp_init_attr_default.
typedef struct dcp_qp_init_attr {
  /// sizeof(struct dcp_qp_init_attr).
  uint32_t size;
  /// Worker that it lives on, counted from 0.
  uint32_t worker;
  /// Where its sends complete.
  struct dcp_cq *send_cq;
  /// Where its receives complete; NULL: as send_cq.
  struct dcp_cq *recv_cq;
  /// Send work requests, 1 to 32768. Default 128.
  uint32_t max_send_wr;
  /// Receive work requests, 1 to 32768. Default 512.
  uint32_t max_recv_wr;
  /// Payload of a full packet, 256 to 8192; cut to what the device carries. The same on both sides. Default 4096.
  uint32_t mtu;
  /// Messages under way at once, a power of two. Default 128.
  uint32_t window;
  /// READs and atomics unanswered at once; 0: none of either. Default 16.
  uint32_t max_rd_atomic;
  /// Bytes in flight at most; 0: no limit. Default 262144.
  uint32_t window_bytes;
  /// Coarse timeout, 4.096 us times 2 to the power of this; 0: never. Default 14.
  uint8_t timeout;
  /// Resends before it gives up, 0 to 7. Default 7.
  uint8_t retry_cnt;
  /// Waits for a missing receive, 0 to 6; 7: for ever. Default 7.
  uint8_t rnr_retry;
  /// 1: frames carry an ICRC. Default 0.
  uint8_t icrc;
  /// 1: every send work request makes a completion. Default 0.
  uint8_t sq_sig_all;
  /// Zero.
  uint8_t reserved[3];
} dcp_qp_init_attr;

/// What the other side must know to connect: exchange it over a channel of the program's own, between machines of one
/// byte order.
typedef struct dcp_qp_address {
  /// sizeof(struct dcp_qp_address).
  uint32_t size;
  /// Queue pair number.
  uint32_t qpn;
  /// IPv4 address, in reading order.
  uint8_t ip[4];
  /// Ethernet address, or a gateway's.
  uint8_t mac[6];
  /// UDP port of its worker.
  uint16_t service_port;
  /// First message number it sends.
  uint32_t start_msn;
  /// First send sequence number it sends.
  uint32_t start_ssn;
  /// Zero.
  uint32_t reserved;
} dcp_qp_address;

/// A piece of memory.
typedef struct dcp_sge {
  /// Where it begins.
  uint64_t addr;
  /// Its bytes.
  uint32_t length;
  /// dcp_mr_lkey of the region that it lies in.
  uint32_t lkey;
} dcp_sge;

/// A send work request. Set all of it to zero before anything else.
typedef struct dcp_send_wr {
  /// Comes back in the completion.
  uint64_t wr_id;
  /// The next one of a list, or NULL.
  struct dcp_send_wr *next;
  /// Where the bytes are, or where an answer goes.
  const struct dcp_sge *sg_list;
  /// So many pieces, at most 16.
  uint32_t num_sge;
  /// What to do, a dcp_wr_opcode.
  uint32_t opcode;
  /// Of dcp_send_flags, or-ed.
  uint32_t send_flags;
  /// Immediate data, in the machine's byte order; the peer gets the same number.
  uint32_t imm_data;
  /// Where in the peer's memory.
  uint64_t remote_addr;
  /// dcp_mr_rkey of the peer's region.
  uint32_t rkey;
  /// Zero.
  uint32_t reserved;
  /// What is added, or compared.
  uint64_t compare_add;
  /// What is put in its place.
  uint64_t swap;
} dcp_send_wr;

/// A receive work request.
typedef struct dcp_recv_wr {
  /// Comes back in the completion.
  uint64_t wr_id;
  /// The next one of a list, or NULL.
  struct dcp_recv_wr *next;
  /// Where the bytes go.
  const struct dcp_sge *sg_list;
  /// So many pieces, at most 16.
  uint32_t num_sge;
  /// Zero.
  uint32_t reserved;
} dcp_recv_wr;

/// Memory of the peer's: for the remote_addr and rkey of work requests.
typedef struct dcp_remote_mr {
  /// sizeof(struct dcp_remote_mr).
  uint32_t size;
  /// Its key.
  uint32_t rkey;
  /// Address of its first byte.
  uint64_t addr;
  /// Bytes.
  uint64_t length;
} dcp_remote_mr;

#ifdef __cplusplus
extern "C" {
#endif // __cplusplus

/// Version of the library that runs: DCP_VERSION_NUMBER(major, minor, patch).
uint32_t dcp_version(void);

/// The same as text: "0.1.0". Static.
const char *dcp_version_str(void);

/// What went wrong in the calling thread's last call that failed: one sentence, in UTF-8; empty if none did. Never NULL.
///
/// The text stays until the thread asks again or ends. Threads: each has its own.
const char *dcp_last_error(void);

/// Name of a completion's status, such as "WR_FLUSH_ERR"; "UNKNOWN" for a number that is none. Static, never NULL.
const char *dcp_status_str(uint32_t status);

/// Opens a device: "memif:SOCKET[,id=N][,role=server|client]", "af_packet:eth1", "tap:dcp0", "pci:0000:3b:00.0", "null",
/// "vdev:NAME,ARGUMENTS"; for "loop" there is dcp_open_pair. `options` says at least the device's IPv4 address. It answers
/// ARP and ping for it while its workers run. Waits for the link. The first call in a process starts DPDK; memif and pci
/// must be known to it then.
///
/// Fails with EINVAL, ENODEV, ENETDOWN (no link, no peer), EPERM, ENOMEM, EALREADY.
struct dcp_context *dcp_open(const char *uri,
                             const struct dcp_options *options);

/// Stops the workers' threads and gives the handle back. The device itself closes with the last of what was made on it:
/// handles may be given back in any order.
int dcp_close(struct dcp_context *context);

/// Drives the workers that have no threads of their own; dcp_poll_cq does so, too. Returns how much they moved, 0 when
/// idle. Without threads nothing moves unless somebody polls. Threads: one at a time drives a worker, others skip it.
int dcp_poll(struct dcp_context *context);

/// Starts a thread for each worker, pinned to `cores` in order; with `cores_len` 0 the system places them. `flags` is
/// zero or of dcp_workers_flags. Fails with EINVAL, EALREADY (they run), EAGAIN (no thread or no such core).
/// Threads: serialised.
int dcp_start_workers(struct dcp_context *context,
                      const uint32_t *cores,
                      size_t cores_len,
                      uint32_t flags);

/// Ends the workers' threads; polls drive the workers then. Does nothing when there are none. Threads: serialised.
int dcp_stop_workers(struct dcp_context *context);

/// Number of workers.
int dcp_num_workers(struct dcp_context *context);

/// Reads the counters. Waits for every worker once: not for the hot path.
int dcp_query_stats(struct dcp_context *context, struct dcp_stats *stats);

/// Opens two devices in this process that are joined: what one sends, the other receives. For tests and first steps; it
/// needs no rights. Options may be NULL; both must ask for the same workers and mtu.
///
/// Fails with EINVAL, ENODEV, ENOMEM, EALREADY.
int dcp_open_pair(const struct dcp_options *first_options,
                  const struct dcp_options *second_options,
                  struct dcp_context **first,
                  struct dcp_context **second);

/// Makes a protection domain.
struct dcp_pd *dcp_alloc_pd(struct dcp_context *context);

/// Gives a protection domain back. It lives on in what was made in it.
int dcp_dealloc_pd(struct dcp_pd *pd);

/// Allocates `length` bytes, zeroed, in huge pages where there are any, and registers them. `access` is of dcp_access.
/// The memory is the library's: dcp_mr_addr says where, dcp_dereg_mr frees it. Fails with EINVAL, ENOMEM.
struct dcp_mr *dcp_alloc_mr(struct dcp_pd *pd,
                            size_t length,
                            uint32_t access);

/// Registers `length` bytes of the caller's memory at `addr`. It must stay mapped, readable and writable until
/// dcp_dereg_mr returned 0; peers and the library change it at any moment as `access`, of dcp_access, allows. With
/// DCP_ACCESS_REMOTE_ATOMIC, `addr` is a multiple of 8. Fails with EINVAL, ENOMEM.
struct dcp_mr *dcp_reg_mr(struct dcp_pd *pd,
                          void *addr,
                          size_t length,
                          uint32_t access);

/// Ends every access to the region at once. Work requests that name it later fail with LOC_PROT_ERR, peers' with
/// REM_ACCESS_ERR; what is under way is still finished out of it.
///
/// Memory of the library's is freed when nothing refers to it, later if need be. For the caller's memory this waits up
/// to 0.1 s, polling, and fails with EBUSY if work under way still refers to it: the memory is not the caller's yet, the
/// handle stays, and the call is to be made again after polling for completions, or after dcp_qp_close.
int dcp_dereg_mr(struct dcp_mr *mr);

/// Where the region begins: for work requests, for the peer's remote_addr, and for the program. NULL on failure.
void *dcp_mr_addr(const struct dcp_mr *mr);

/// Its length in bytes; 0 on failure.
size_t dcp_mr_length(const struct dcp_mr *mr);

/// Its key for own work requests; 0 on failure.
uint32_t dcp_mr_lkey(const struct dcp_mr *mr);

/// Its key for peers; 0 on failure.
uint32_t dcp_mr_rkey(const struct dcp_mr *mr);

/// Makes a completion queue for `depth` completions of each worker: at least as many as can be outstanding.
/// Fails with EINVAL, EMFILE.
struct dcp_cq *dcp_create_cq(struct dcp_context *context,
                             uint32_t depth);

/// Gives a completion queue back. Its descriptor is closed with the last queue pair that completes to it.
int dcp_destroy_cq(struct dcp_cq *cq);

/// Takes up to `num_entries` completions and returns how many; drives the workers that have no threads. Fails with
/// EOVERFLOW once completions were lost because the queue was too short: its queue pairs are of no use any more.
int dcp_poll_cq(struct dcp_cq *cq,
                int num_entries,
                struct dcp_wc *wc);

/// A descriptor for epoll and poll: readable when completions came after dcp_req_notify_cq. For workers with threads.
/// It stays the library's: neither read nor close it. Returns it, or a negative error number.
int dcp_cq_fd(struct dcp_cq *cq);

/// Makes the descriptor quiet, and readable at the next completion. What came before it makes no event: poll once more
/// after it, then wait.
int dcp_req_notify_cq(struct dcp_cq *cq);

/// Sets `attr` to the defaults; `size` is sizeof(struct dcp_qp_init_attr). send_cq is left to be set.
int dcp_qp_init_attr_default(struct dcp_qp_init_attr *attr,
                             size_t size);

/// Makes a queue pair, in state INIT: it takes receives. Fails with EINVAL, EXDEV (objects of two devices).
struct dcp_qp *dcp_create_qp(struct dcp_pd *pd,
                             const struct dcp_qp_init_attr *attr);

/// Ends a queue pair. What is outstanding makes no completions any more; dcp_qp_close first, if they are wanted.
int dcp_destroy_qp(struct dcp_qp *qp);

/// Writes what the other side needs for its dcp_qp_connect. Set address->size first.
int dcp_query_qp_address(struct dcp_qp *qp, struct dcp_qp_address *address);

/// Connects to the other side's queue pair, once: it sends and receives from now on. `pkey` is the connection's, the
/// same on both sides, chosen by whoever connects. Post receives before, if the peer may send at once.
///
/// Fails with EINVAL, EISCONN. Threads: serialised.
int dcp_qp_connect(struct dcp_qp *qp,
                   const struct dcp_qp_address *peer,
                   uint16_t pkey);

/// Moves a queue pair to the error state: everything outstanding completes with WR_FLUSH_ERR. Threads: serialised.
int dcp_qp_close(struct dcp_qp *qp);

/// Its state, a dcp_qp_state, as its worker last said; or a negative error number.
int dcp_qp_get_state(struct dcp_qp *qp);

/// Send work requests that can be posted now, or a negative error number.
int dcp_qp_send_room(struct dcp_qp *qp);

/// Its number, as in completions; 0 on failure.
uint32_t dcp_qp_num(const struct dcp_qp *qp);

/// Posts a list of send work requests, in order, until one is not taken; `bad_wr`, unless NULL, is set to that one. They
/// leave when the worker next runs. Requests and lists are the caller's again on return; the memory they name, with the
/// completion.
///
/// Fails with ENOMEM (the queue is full: poll), EAGAIN (the worker is busy: poll), ENOTCONN, EMSGSIZE (over 2 GiB),
/// EOPNOTSUPP (max_rd_atomic is 0), EINVAL. Wrong keys are found later and make a completion. Threads: serialised.
int dcp_post_send(struct dcp_qp *qp,
                  struct dcp_send_wr *wr,
                  struct dcp_send_wr **bad_wr);

/// Posts a list of receive work requests; all else is as with dcp_post_send. Threads: serialised.
int dcp_post_recv(struct dcp_qp *qp, struct dcp_recv_wr *wr, struct dcp_recv_wr **bad_wr);

/// Listens on a TCP port; 0: one that the system chooses, dcp_listener_port says which. `address` is an IPv4 or IPv6
/// address to listen on; NULL: all of them, of both kinds. Needs no device. Fails with EINVAL,
/// EADDRINUSE, EADDRNOTAVAIL (no address of this machine), EACCES.
struct dcp_listener *dcp_listen(const char *address,
                                uint16_t port);

/// The port of a listener, or a negative error number.
int dcp_listener_port(const struct dcp_listener *listener);

/// Stops listening. Connections that were accepted stay.
int dcp_close_listener(struct dcp_listener *listener);

/// Waits up to `timeout_ms` for a connection, and connects `qp`, fresh, with it: both sides take the smaller of each
/// limit, and may send when this returns. Post receives before. The peer may reach the `mrs_len` regions of `mrs`, of
/// which it learns address and key. Drives the workers of the device of `qp` that have no threads. The connection is the
/// caller's to end with dcp_conn_close; `qp` must be destroyed by itself.
///
/// Fails with EINVAL, EISCONN, ETIMEDOUT (nobody came, or the peer fell silent), ECONNREFUSED, ECONNRESET, EPROTO (who
/// came is no DCP program); the listener can be used again. After a failure make a new queue pair, unless nobody came.
/// Threads: serialised by `qp`.
struct dcp_conn *dcp_accept(struct dcp_listener *listener,
                            struct dcp_context *context,
                            struct dcp_qp *qp,
                            const struct dcp_mr *const *mrs,
                            size_t mrs_len,
                            uint32_t timeout_ms);

/// Connects `qp`, fresh, to a program that listens at `host`: "name:port", "10.0.0.1:port" or "[::1]:port". Everything
/// else as dcp_accept.
///
/// Fails with EINVAL, EISCONN, ECONNREFUSED (nobody there, or refused), ETIMEDOUT, ECONNRESET, EPROTO. Threads:
/// serialised by `qp`.
struct dcp_conn *dcp_connect(struct dcp_qp *qp,
                             const char *host,
                             const struct dcp_mr *const *mrs,
                             size_t mrs_len,
                             uint32_t timeout_ms);

/// Describes the peer's region number `index`, counted from 0 in the order that the peer offered them. Set remote->size
/// first. Returns 0, or -ENOENT when there are not so many.
int dcp_conn_remote(const struct dcp_conn *conn,
                    size_t index,
                    struct dcp_remote_mr *remote);

/// Whether the peer is still there; never waits. Returns 1 if so, 0 after it ended the connection in good order, and
/// -ECONNRESET when its process or host is gone. Call it now and then. Threads: serialised.
int dcp_conn_poll(struct dcp_conn *conn);

/// Sends a string, in UTF-8 and of at most 4096 bytes, to the peer's program, beside the queue pair.
/// Fails with EINVAL, EMSGSIZE, ECONNRESET, ETIMEDOUT. Threads: serialised.
int dcp_conn_send(struct dcp_conn *conn,
                  const char *text);

/// Waits for a string of the peer's dcp_conn_send, as long as dcp_connect or dcp_accept was told to, driving workers
/// that have no threads. Writes it with a zero behind it to the `text_len` bytes of `text`. Returns its length.
/// Fails with EINVAL, ETIMEDOUT, ECONNRESET, ENOBUFS (too long; it is lost), EPROTO (no string). Threads: serialised.
int dcp_conn_receive(struct dcp_conn *conn,
                     char *text,
                     size_t text_len);

/// Tells the peer that the connection ends in good order, acknowledges what it has under way until it ends the connection
/// too, for up to ten seconds, and gives the handle back. Without it the end of the process looks like a death to the
/// peer, and what the peer has sent last may fail there, though it arrived. The queue pair stays: dcp_destroy_qp, and dcp_qp_close before if flushed work is
/// wanted.
int dcp_conn_close(struct dcp_conn *conn);

#ifdef __cplusplus
}  // extern "C"
#endif  // __cplusplus

#endif  /* DCP_H */
