/* Every function of dcp.h over two devices in one process, and its refusals. */
#define _POSIX_C_SOURCE 200809L
#include <errno.h>
#include <poll.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dcp.h>

#define CHECK(condition)                                                                      \
  do {                                                                                        \
    if (!(condition)) {                                                                       \
      fprintf(stderr, "%s:%d: %s (%s)\n", __FILE__, __LINE__, #condition, dcp_last_error()); \
      exit(1);                                                                                \
    }                                                                                         \
  } while (0)

enum { MR_BYTES = 1 << 20, MESSAGE = 100000, EVERYTHING = 15 };

struct side {
  dcp_context *context;
  dcp_pd *pd;
  dcp_cq *cq;
  dcp_mr *mr;
  dcp_qp *qp;
  unsigned char *bytes;
};

static struct side client, server;

static dcp_qp *make_qp(struct side *side, uint32_t depth) {
  dcp_qp_init_attr attr;
  CHECK(dcp_qp_init_attr_default(&attr, sizeof attr) == 0);
  CHECK(attr.max_send_wr == 128 && attr.retry_cnt == 7 && attr.size == sizeof attr);
  attr.send_cq = side->cq;
  attr.max_send_wr = depth;
  dcp_qp *qp = dcp_create_qp(side->pd, &attr);
  CHECK(qp && dcp_qp_num(qp) != 0 && dcp_qp_get_state(qp) == DCP_QPS_INIT);
  return qp;
}

static dcp_qp_address address_of(dcp_qp *qp) {
  dcp_qp_address address = {.size = sizeof address};
  CHECK(dcp_query_qp_address(qp, &address) == 0 && address.qpn == dcp_qp_num(qp));
  return address;
}

static void make(struct side *side) {
  CHECK((side->pd = dcp_alloc_pd(side->context)));
  CHECK((side->cq = dcp_create_cq(side->context, 1024)));
  CHECK((side->mr = dcp_alloc_mr(side->pd, MR_BYTES, EVERYTHING)));
  CHECK(dcp_mr_length(side->mr) == MR_BYTES && dcp_mr_lkey(side->mr) && dcp_mr_rkey(side->mr));
  CHECK((side->bytes = dcp_mr_addr(side->mr)) && side->bytes[MR_BYTES - 1] == 0);
  side->qp = make_qp(side, 64);
}

static void connect_pair(dcp_qp *a, dcp_qp *b) {
  dcp_qp_address of_a = address_of(a), of_b = address_of(b);
  CHECK(dcp_qp_connect(a, &of_b, 0x1234) == 0 && dcp_qp_connect(b, &of_a, 0x1234) == 0);
  CHECK(dcp_qp_get_state(a) == DCP_QPS_RTS);
}

static dcp_wc wait_on(struct side *side, struct side *peer) {
  dcp_wc wc;
  for (long round = 0; round < 50000000; round++) {
    int count = dcp_poll_cq(side->cq, 1, &wc);
    CHECK(count >= 0);
    if (count == 1) return wc;
    CHECK(dcp_poll(peer->context) >= 0);
    sched_yield();
  }
  CHECK(!"a completion comes");
  return wc;
}

static dcp_sge piece(struct side *side, size_t offset, uint32_t length) {
  return (dcp_sge){(uintptr_t)(side->bytes + offset), length, dcp_mr_lkey(side->mr)};
}

static dcp_send_wr request(uint64_t wr_id, dcp_wr_opcode opcode, const dcp_sge *sges, uint32_t count, size_t at) {
  dcp_send_wr wr = {0};
  wr.wr_id = wr_id;
  wr.opcode = opcode;
  wr.sg_list = sges;
  wr.num_sge = count;
  wr.send_flags = DCP_SEND_SIGNALED;
  wr.remote_addr = (uintptr_t)(server.bytes + at);
  wr.rkey = dcp_mr_rkey(server.mr);
  return wr;
}

static void post_and_wait(dcp_send_wr *wr, dcp_wc_opcode expected) {
  dcp_send_wr *bad = NULL;
  CHECK(dcp_post_send(client.qp, wr, &bad) == 0 && bad == NULL);
  dcp_wc wc = wait_on(&client, &server);
  CHECK(wc.status == DCP_WC_SUCCESS && wc.wr_id == wr->wr_id && wc.opcode == (uint32_t)expected);
  CHECK(wc.qp_num == dcp_qp_num(client.qp));
}

static void post_receive(struct side *side, uint64_t wr_id, const dcp_sge *sge) {
  dcp_recv_wr wr = {0}, *bad = NULL;
  wr.wr_id = wr_id;
  wr.sg_list = sge;
  wr.num_sge = sge ? 1 : 0;
  CHECK(dcp_post_recv(side->qp, &wr, &bad) == 0);
}

static void every_operation_moves_its_bytes(void) {
  for (int i = 0; i < MESSAGE; i++) client.bytes[i] = (unsigned char)(i % 251 * 31 + 1);
  dcp_sge pieces[2] = {piece(&client, 0, 40000), piece(&client, 40000, MESSAGE - 40000)};
  dcp_send_wr wr = request(1, DCP_WR_RDMA_WRITE, pieces, 2, 64);
  post_and_wait(&wr, DCP_WC_RDMA_WRITE);
  CHECK(memcmp(server.bytes + 64, client.bytes, MESSAGE) == 0);

  dcp_sge into = piece(&server, 500000, MESSAGE);
  post_receive(&server, 7, &into);
  wr = request(2, DCP_WR_SEND_WITH_IMM, pieces, 2, 0);
  wr.imm_data = 0x01020304;
  wr.send_flags |= DCP_SEND_SOLICITED;
  post_and_wait(&wr, DCP_WC_SEND);
  dcp_wc wc = wait_on(&server, &client);
  CHECK(wc.wr_id == 7 && wc.opcode == DCP_WC_RECV && wc.byte_len == MESSAGE && wc.imm_data == 0x01020304);
  CHECK(wc.wc_flags == (DCP_WC_WITH_IMM | DCP_WC_SOLICITED));
  CHECK(memcmp(server.bytes + 500000, client.bytes, MESSAGE) == 0);

  post_receive(&server, 8, &into);
  wr = request(3, DCP_WR_SEND, pieces, 1, 0);
  post_and_wait(&wr, DCP_WC_SEND);
  wc = wait_on(&server, &client);
  CHECK(wc.wr_id == 8 && wc.byte_len == 40000 && wc.wc_flags == 0);

  post_receive(&server, 9, NULL);
  wr = request(4, DCP_WR_RDMA_WRITE_WITH_IMM, pieces, 1, 0);
  wr.imm_data = 5;
  post_and_wait(&wr, DCP_WC_RDMA_WRITE);
  wc = wait_on(&server, &client);
  CHECK(wc.wr_id == 9 && wc.opcode == DCP_WC_RECV_RDMA_WITH_IMM && wc.imm_data == 5);

  dcp_sge back = piece(&client, 200000, MESSAGE);
  wr = request(5, DCP_WR_RDMA_READ, &back, 1, 500000);
  post_and_wait(&wr, DCP_WC_RDMA_READ);
  CHECK(memcmp(client.bytes + 200000, server.bytes + 500000, MESSAGE) == 0);
}

static void atomics_and_inline(void) {
  uint64_t *counter = (uint64_t *)(void *)(server.bytes + 800000);
  uint64_t *before = (uint64_t *)(void *)(client.bytes + 900000);
  dcp_sge result = piece(&client, 900000, 8);
  *counter = 41;
  dcp_send_wr wr = request(6, DCP_WR_ATOMIC_FETCH_AND_ADD, &result, 1, 800000);
  wr.compare_add = 1;
  post_and_wait(&wr, DCP_WC_FETCH_ADD);
  CHECK(*before == 41 && *counter == 42);
  wr = request(7, DCP_WR_ATOMIC_CMP_AND_SWP, &result, 1, 800000);
  wr.compare_add = 42;
  wr.swap = 7;
  post_and_wait(&wr, DCP_WC_COMP_SWAP);
  CHECK(*before == 42 && *counter == 7);

  char text[2][8] = {"inline,", "twice"};
  dcp_sge parts[2] = {{(uintptr_t)text[0], 7, 0}, {(uintptr_t)text[1], 6, 0}};
  wr = request(8, DCP_WR_RDMA_WRITE, parts, 2, 0);
  wr.send_flags |= DCP_SEND_INLINE | DCP_SEND_FENCE;
  dcp_send_wr *bad;
  CHECK(dcp_post_send(client.qp, &wr, &bad) == 0);
  memset(text, 'x', sizeof text);
  CHECK(wait_on(&client, &server).wr_id == 8);
  CHECK(strcmp((char *)server.bytes, "inline,twice") == 0);
}

static void list_stops_at_the_first_that_does_not_fit(void) {
  struct side a = client, b = server;
  a.qp = make_qp(&client, 4);
  b.qp = make_qp(&server, 4);
  dcp_sge one = piece(&client, 0, 8);
  dcp_send_wr wrs[6], *bad = NULL;
  for (int i = 0; i < 6; i++) {
    wrs[i] = request(100 + i, DCP_WR_RDMA_WRITE, &one, 1, 0);
    wrs[i].next = i < 5 ? &wrs[i + 1] : NULL;
  }
  CHECK(dcp_post_send(a.qp, wrs, &bad) == -ENOTCONN && bad == &wrs[0]);
  connect_pair(a.qp, b.qp);
  CHECK(dcp_qp_send_room(a.qp) == 4);
  CHECK(dcp_post_send(a.qp, wrs, &bad) == -ENOMEM && errno == ENOMEM && bad == &wrs[4]);
  CHECK(strstr(dcp_last_error(), "queue of 4 is full"));
  for (int i = 0; i < 4; i++) CHECK(wait_on(&client, &server).wr_id == (uint64_t)(100 + i));
  CHECK(dcp_post_send(a.qp, bad, NULL) == 0);
  for (int i = 4; i < 6; i++) CHECK(wait_on(&client, &server).wr_id == (uint64_t)(100 + i));

  dcp_recv_wr receives[2] = {{0}, {0}}, *bad_receive = NULL;
  receives[0].next = &receives[1];
  receives[1].wr_id = 1;
  receives[1].num_sge = 17;
  receives[1].sg_list = &one;
  CHECK(dcp_post_recv(a.qp, receives, &bad_receive) == -EINVAL && bad_receive == &receives[1]);
  CHECK(dcp_qp_close(a.qp) == 0 && dcp_qp_get_state(a.qp) == DCP_QPS_ERR);
  dcp_wc wc = wait_on(&client, &server);
  CHECK(wc.status == DCP_WC_WR_FLUSH_ERR && strcmp(dcp_status_str(wc.status), "WR_FLUSH_ERR") == 0);
  CHECK(dcp_destroy_qp(a.qp) == 0 && dcp_destroy_qp(b.qp) == 0);
}

static void foreign_memory_comes_back_when_nothing_refers_to_it(void) {
  char *memory = malloc(5000);
  CHECK(memory);
  memset(memory, 'm', 5000);
  /* At an odd address: atomics of peers are refused there, all else works. */
  CHECK(!dcp_reg_mr(client.pd, memory + 1, 4000, DCP_ACCESS_REMOTE_ATOMIC) && errno == EINVAL);
  CHECK(!dcp_reg_mr(client.pd, memory, 0, 0) && !dcp_reg_mr(client.pd, NULL, 8, 0));
  CHECK(!dcp_reg_mr(client.pd, memory, 8, 16) && errno == EINVAL);
  dcp_mr *mr = dcp_reg_mr(client.pd, memory + 1, 4000, 0);
  CHECK(mr && dcp_mr_addr(mr) == memory + 1);
  dcp_sge sge = {(uintptr_t)(memory + 1), 4000, dcp_mr_lkey(mr)};
  dcp_send_wr wr = request(9, DCP_WR_RDMA_WRITE, &sge, 1, 0);
  CHECK(dcp_post_send(client.qp, &wr, NULL) == 0);
  CHECK(dcp_dereg_mr(mr) == -EBUSY); /* nobody polls the server, so no ACK came */
  CHECK(wait_on(&client, &server).status == DCP_WC_SUCCESS);
  while (dcp_poll(server.context) + dcp_poll(client.context) > 0) {
  }
  CHECK(dcp_dereg_mr(mr) == 0);
  memset(memory, 0, 5000);
  free(memory);
  CHECK(server.bytes[0] == 'm' && server.bytes[3999] == 'm');
}

static void wrong_keys_complete_with_an_error(void) {
  struct side a = client, b = server;
  a.qp = make_qp(&client, 4);
  b.qp = make_qp(&server, 4);
  connect_pair(a.qp, b.qp);
  dcp_sge one = piece(&client, 0, 8);
  dcp_send_wr wr = request(10, DCP_WR_RDMA_WRITE, &one, 1, 0);
  wr.rkey ^= 0x10000;
  CHECK(dcp_post_send(a.qp, &wr, NULL) == 0);
  CHECK(wait_on(&client, &server).status == DCP_WC_REM_ACCESS_ERR);
  dcp_qp_address peer = address_of(b.qp);
  CHECK(dcp_qp_connect(a.qp, &peer, 1) == -EISCONN);
  CHECK(dcp_destroy_qp(a.qp) == 0 && dcp_destroy_qp(b.qp) == 0);
}

static void misuse_is_refused(void) {
  dcp_wc wc;
  dcp_options options = {0};
  dcp_context *none = NULL;
  CHECK(dcp_poll(NULL) == -EINVAL && dcp_close(NULL) == -EINVAL && !dcp_alloc_pd(NULL));
  CHECK(strstr(dcp_last_error(), "dcp_context"));
  CHECK(dcp_poll((dcp_context *)(void *)client.pd) == -EINVAL);
  CHECK(dcp_destroy_qp((dcp_qp *)(void *)client.mr) == -EINVAL);
  CHECK(dcp_poll_cq(client.cq, -1, &wc) == -EINVAL && dcp_poll_cq(client.cq, 1, NULL) == -EINVAL);
  CHECK(dcp_poll_cq(client.cq, 0, &wc) == 0);
  CHECK(!dcp_create_cq(client.context, 0) && errno == EINVAL);
  CHECK(!dcp_alloc_mr(client.pd, 0, 0) && !dcp_create_qp(client.pd, NULL));
  CHECK(dcp_mr_addr(NULL) == NULL && dcp_mr_length(NULL) == 0 && dcp_qp_num(NULL) == 0);
  CHECK(dcp_post_send(client.qp, NULL, NULL) == -EINVAL);
  dcp_send_wr wr = request(0, (dcp_wr_opcode)99, NULL, 0, 0);
  CHECK(dcp_post_send(client.qp, &wr, NULL) == -EINVAL);
  wr = request(0, DCP_WR_SEND, NULL, 3, 0);
  CHECK(dcp_post_send(client.qp, &wr, NULL) == -EINVAL);
  dcp_sge long_inline = piece(&client, 0, 1025);
  wr = request(0, DCP_WR_RDMA_WRITE, &long_inline, 1, 0);
  wr.send_flags |= DCP_SEND_INLINE;
  CHECK(dcp_post_send(client.qp, &wr, NULL) == -EINVAL && strstr(dcp_last_error(), "1025 inline bytes"));
  dcp_qp_address nobody = {.size = sizeof nobody};
  CHECK(dcp_qp_connect(client.qp, &nobody, 1) == -EINVAL);
  dcp_qp_init_attr attr;
  CHECK(dcp_qp_init_attr_default(&attr, sizeof attr) == 0);
  attr.send_cq = server.cq;
  CHECK(!dcp_create_qp(client.pd, &attr) && errno == EXDEV);
  CHECK(!dcp_open("loop", NULL) && !dcp_open(NULL, &options) && !dcp_open("loop", &options));
  options.size = sizeof options;
  CHECK(!dcp_open("null", &options) && strstr(dcp_last_error(), "IPv4"));
  options.ip[0] = 10;
  CHECK(!dcp_open("null", &options) && errno == EINVAL && strstr(dcp_last_error(), "10.0.0.0/24"));
  options.ip[3] = 9;
  options.gateway[0] = 11;
  CHECK(!dcp_open("null", &options) && errno == EINVAL);
  options.gateway[0] = 0;
  options.telemetry = 2;
  CHECK(!dcp_open("null", &options) && errno == EINVAL);
  options.telemetry = 0;
  dcp_context *null = dcp_open("null", &options);
  CHECK(null && dcp_close(null) == 0);
  CHECK(!dcp_open("loop", &options) && errno == EINVAL);
  CHECK(!dcp_open("carrier-pigeon:1", &options) && errno == EINVAL);
  CHECK(!dcp_open("memif:/tmp/dcp-capi-test.sock", &options) && errno == EALREADY);
  options.mtu = 100;
  CHECK(dcp_open_pair(&options, &options, &none, &none) == -EINVAL && none == NULL);
  CHECK(strcmp(dcp_status_str(99), "UNKNOWN") == 0);
}

static int opens(const dcp_options *options) {
  dcp_context *contexts[2];
  int code = dcp_open_pair(options, NULL, &contexts[0], &contexts[1]);
  if (code == 0) CHECK(dcp_num_workers(contexts[0]) == 1 && dcp_close(contexts[0]) == 0 && dcp_close(contexts[1]) == 0);
  return code;
}

static void structures_may_be_older_or_newer(void) {
  struct {
    dcp_options options;
    uint32_t later;
  } newer = {.options = {.size = sizeof newer, .mbufs = 511}};
  CHECK(opens(&newer.options) == 0);
  newer.later = 1;
  CHECK(opens(&newer.options) == -E2BIG);
  dcp_options options = {.size = 8, .mtu = 77};
  CHECK(opens(&options) == 0); /* mtu lies past its end */
  options.size = sizeof options;
  CHECK(opens(&options) == -EINVAL);
  options.size = 0;
  CHECK(opens(&options) == -EINVAL && strstr(dcp_last_error(), "size"));
  dcp_stats stats = {.size = 16, .data_bytes = 77};
  CHECK(dcp_query_stats(client.context, &stats) == 0 && stats.data_packets > 0 && stats.data_bytes == 77);
  stats.size = sizeof stats;
  CHECK(dcp_query_stats(client.context, &stats) == 0 && stats.data_bytes > 200000 && stats.frames_sent > 0);
}

static void *other_thread(void *unused) {
  CHECK(strcmp(dcp_last_error(), "") == 0);
  CHECK(dcp_poll(NULL) == -EINVAL && strstr(dcp_last_error(), "dcp_context"));
  return unused;
}

static void errors_belong_to_their_thread(void) {
  CHECK(dcp_destroy_cq(NULL) == -EINVAL && strstr(dcp_last_error(), "dcp_cq"));
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, other_thread, NULL) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(strstr(dcp_last_error(), "dcp_cq"));
}

static void threads_wake_who_waits_on_the_descriptor(void) {
  uint32_t core = 100000;
  CHECK(dcp_start_workers(client.context, &core, 1, 0) == -EAGAIN);
  CHECK(dcp_start_workers(client.context, NULL, 1, 0) == -EINVAL);
  CHECK(dcp_start_workers(client.context, NULL, 0, 2) == -EINVAL);
  CHECK(dcp_start_workers(client.context, NULL, 0, 0) == 0 && dcp_start_workers(server.context, NULL, 0, 0) == 0);
  CHECK(dcp_start_workers(client.context, NULL, 0, 0) == -EALREADY);
  for (int round = 0; round < 20; round++) {
    dcp_wc wc;
    dcp_sge sge = piece(&client, 0, 4096);
    dcp_send_wr wr = request(round, DCP_WR_RDMA_WRITE, &sge, 1, 4096);
    CHECK(dcp_req_notify_cq(client.cq) == 0 && dcp_poll_cq(client.cq, 1, &wc) == 0);
    CHECK(dcp_post_send(client.qp, &wr, NULL) == 0);
    struct pollfd fd = {.fd = dcp_cq_fd(client.cq), .events = POLLIN};
    CHECK(fd.fd >= 0 && poll(&fd, 1, 60000) == 1);
    CHECK(dcp_poll_cq(client.cq, 1, &wc) == 1 && wc.status == DCP_WC_SUCCESS && wc.wr_id == (uint64_t)round);
  }
  CHECK(dcp_stop_workers(client.context) == 0 && dcp_stop_workers(client.context) == 0);
  CHECK(dcp_stop_workers(server.context) == 0);
  dcp_sge sge = piece(&client, 0, 64);
  dcp_send_wr wr = request(21, DCP_WR_RDMA_WRITE, &sge, 1, 0);
  post_and_wait(&wr, DCP_WC_RDMA_WRITE); /* polls drive again */
}

struct acceptor {
  dcp_listener *listener;
  dcp_qp *qp;
  dcp_conn *conn;
};

static void *accept_one(void *argument) {
  struct acceptor *acceptor = argument;
  const dcp_mr *offered[] = {server.mr};
  acceptor->conn = dcp_accept(acceptor->listener, server.context, acceptor->qp, offered, 1, 30000);
  CHECK(acceptor->conn);
  return NULL;
}

static void *close_one(void *conn) {
  CHECK(dcp_conn_close(conn) == 0); /* returns when the other side has closed too */
  return NULL;
}

static void connections_over_tcp(const char *address, const char *host) {
  struct acceptor acceptor = {.listener = dcp_listen(address, 0), .qp = make_qp(&server, 16)};
  CHECK(acceptor.listener && dcp_listener_port(acceptor.listener) > 0);
  CHECK(!dcp_listen(address, (uint16_t)dcp_listener_port(acceptor.listener)) && errno == EADDRINUSE);
  CHECK(!dcp_listen("192.0.2.1", 0) && errno == EADDRNOTAVAIL); /* TEST-NET-1: nobody's */
  pthread_t thread;
  CHECK(pthread_create(&thread, NULL, accept_one, &acceptor) == 0);
  dcp_qp *qp = make_qp(&client, 16);
  char to[64];
  snprintf(to, sizeof to, "%s:%d", host, dcp_listener_port(acceptor.listener));
  dcp_conn *conn = dcp_connect(qp, to, NULL, 0, 30000);
  CHECK(conn && pthread_join(thread, NULL) == 0);
  CHECK(!dcp_connect(qp, to, NULL, 0, 30000) && errno == EISCONN);

  dcp_remote_mr remote = {.size = sizeof remote};
  CHECK(dcp_conn_remote(conn, 0, &remote) == 0 && remote.length == MR_BYTES);
  CHECK(remote.addr == (uintptr_t)server.bytes && remote.rkey == dcp_mr_rkey(server.mr));
  CHECK(dcp_conn_remote(conn, 1, &remote) == -ENOENT && dcp_conn_remote(acceptor.conn, 0, &remote) == -ENOENT);
  dcp_sge sge = piece(&client, 0, 4096);
  dcp_send_wr wr = request(77, DCP_WR_RDMA_WRITE, &sge, 1, 8192);
  dcp_wc wc;
  memset(client.bytes, 0x5a, 4096);
  CHECK(dcp_post_send(qp, &wr, NULL) == 0);
  int count;
  while ((count = dcp_poll_cq(client.cq, 1, &wc)) == 0)
    dcp_poll(server.context);
  CHECK(count == 1 && wc.wr_id == 77 && wc.status == DCP_WC_SUCCESS && server.bytes[8192 + 4095] == 0x5a);

  char text[8];
  CHECK(dcp_conn_poll(acceptor.conn) == 1 && dcp_conn_send(conn, "seven77") == 0);
  CHECK(dcp_conn_receive(acceptor.conn, text, sizeof text) == 7 && strcmp(text, "seven77") == 0);
  CHECK(dcp_conn_send(conn, "eight888") == 0);
  CHECK(dcp_conn_receive(acceptor.conn, text, sizeof text) == -ENOBUFS);
  CHECK(dcp_conn_send(conn, "\xff") == -EINVAL && dcp_conn_send(conn, NULL) == -EINVAL);
  CHECK(pthread_create(&thread, NULL, close_one, conn) == 0);
  while ((count = dcp_conn_poll(acceptor.conn)) == 1)
    ;
  CHECK(count == 0 && dcp_conn_close(acceptor.conn) == 0 && pthread_join(thread, NULL) == 0);
  CHECK(dcp_destroy_qp(qp) == 0 && dcp_destroy_qp(acceptor.qp) == 0);
  CHECK(dcp_close_listener(acceptor.listener) == 0);
}

static void connections_that_fail_say_why(void) {
  dcp_qp *qp = make_qp(&client, 16);
  CHECK(!dcp_connect(qp, "localhost:1", NULL, 0, 1000) && errno == ECONNREFUSED && strstr(dcp_last_error(), "localhost:1"));
  CHECK(!dcp_connect(qp, NULL, NULL, 0, 1000) && errno == EINVAL);
  CHECK(!dcp_connect(qp, "localhost:1", NULL, 1, 1000) && errno == EINVAL);
  CHECK(!dcp_connect(NULL, "localhost:1", NULL, 0, 1000) && errno == EINVAL);
  CHECK(!dcp_listen("no address", 0) && errno == EINVAL);
  dcp_listener *listener = dcp_listen(NULL, 0);
  CHECK(listener && !dcp_accept(listener, client.context, qp, NULL, 0, 10) && errno == ETIMEDOUT);
  CHECK(dcp_close_listener(listener) == 0 && dcp_destroy_qp(qp) == 0);
  CHECK(dcp_conn_poll(NULL) == -EINVAL && dcp_conn_close(NULL) == -EINVAL && dcp_close_listener(NULL) == -EINVAL);
}

int main(void) {
  CHECK(dcp_version() == DCP_VERSION && strcmp(dcp_version_str(), "0.1.0") == 0);
  CHECK(strcmp(dcp_last_error(), "") == 0);
  dcp_options ours = {.size = sizeof ours, .mbufs = 2047}, theirs = {.size = sizeof theirs, .workers = 2};
  CHECK(dcp_open_pair(&ours, &theirs, &client.context, &server.context) == -EINVAL);
  CHECK(dcp_open_pair(&ours, NULL, &client.context, &server.context) == 0);
  make(&client);
  make(&server);
  connect_pair(client.qp, server.qp);
  every_operation_moves_its_bytes();
  atomics_and_inline();
  list_stops_at_the_first_that_does_not_fit();
  foreign_memory_comes_back_when_nothing_refers_to_it();
  wrong_keys_complete_with_an_error();
  misuse_is_refused();
  structures_may_be_older_or_newer();
  errors_belong_to_their_thread();
  threads_wake_who_waits_on_the_descriptor();
  connections_over_tcp(NULL, "localhost");
  connections_over_tcp("127.0.0.1", "127.0.0.1");
  connections_that_fail_say_why();
  /* In any order: what is needed stays. */
  CHECK(dcp_close(client.context) == 0 && dcp_dealloc_pd(client.pd) == 0 && dcp_destroy_cq(client.cq) == 0);
  CHECK(dcp_destroy_qp(client.qp) == 0 && dcp_dereg_mr(client.mr) == 0);
  CHECK(dcp_destroy_qp(server.qp) == 0 && dcp_dereg_mr(server.mr) == 0 && dcp_destroy_cq(server.cq) == 0);
  CHECK(dcp_dealloc_pd(server.pd) == 0 && dcp_close(server.context) == 0);
  puts("all operations: passed");
  return 0;
}
