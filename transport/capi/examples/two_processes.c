/* Two programs that move a text: the client WRITEs it to the server, the server SENDs it back in capitals. Build:
 *   cc two_processes.c -o two_processes $(pkg-config --cflags --libs dcp)
 * Run, in two terminals of one machine:
 *   ./two_processes memif:/tmp/dcp.sock,role=server 10.9.0.1
 *   ./two_processes memif:/tmp/dcp.sock,role=client 10.9.0.2 localhost:PORT     (the port that the server printed) */
#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dcp.h>

enum { ROOM = 4096, PATIENCE_MS = 30000 };

static dcp_context *context;
static dcp_cq *cq;
static dcp_mr *mr;
static dcp_qp *qp;
static char *bytes;

static void need(int ok) {
  if (!ok) {
    fprintf(stderr, "two_processes: %s\n", dcp_last_error());
    exit(1);
  }
}

static void open_device(const char *uri, const char *ip) {
  unsigned a, b, c, d;
  dcp_options options = {.size = sizeof options, .memory_mib = 64, .mbufs = 2047};
  if (sscanf(ip, "%u.%u.%u.%u", &a, &b, &c, &d) != 4) {
    fprintf(stderr, "two_processes: %s is no IPv4 address\n", ip);
    exit(2);
  }
  options.ip[0] = (uint8_t)a, options.ip[1] = (uint8_t)b, options.ip[2] = (uint8_t)c, options.ip[3] = (uint8_t)d;
  /* Waits for the other program. */
  need((context = dcp_open(uri, &options)) != NULL);
}

static void make_objects(void) {
  dcp_pd *pd = dcp_alloc_pd(context);
  dcp_qp_init_attr attr;
  need((cq = dcp_create_cq(context, 128)) != NULL);
  need((mr = dcp_alloc_mr(pd, ROOM, DCP_ACCESS_LOCAL_WRITE | DCP_ACCESS_REMOTE_WRITE)) != NULL);
  bytes = dcp_mr_addr(mr);
  need(dcp_qp_init_attr_default(&attr, sizeof attr) == 0);
  attr.send_cq = cq;
  need((qp = dcp_create_qp(pd, &attr)) != NULL);
  dcp_dealloc_pd(pd); /* it lives on in what was made in it */
}

static void post_receive(void) {
  dcp_sge sge = {(uintptr_t)bytes, ROOM, dcp_mr_lkey(mr)};
  dcp_recv_wr wr = {0}, *bad;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  need(dcp_post_recv(qp, &wr, &bad) == 0);
}

static void send(uint32_t opcode, uint32_t len, const dcp_remote_mr *to) {
  dcp_sge sge = {(uintptr_t)bytes, len, dcp_mr_lkey(mr)};
  dcp_send_wr wr = {0}, *bad;
  wr.opcode = opcode;
  wr.send_flags = DCP_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  if (to != NULL) {
    wr.remote_addr = to->addr;
    wr.rkey = to->rkey;
  }
  need(dcp_post_send(qp, &wr, &bad) == 0);
}

static void wait_for_completion(void) {
  dcp_wc wc;
  int count;
  while ((count = dcp_poll_cq(cq, 1, &wc)) == 0)
    ;
  need(count > 0);
  if (wc.status != DCP_WC_SUCCESS) {
    fprintf(stderr, "two_processes: %s\n", dcp_status_str(wc.status));
    exit(1);
  }
}

static int serve(const char *uri, const char *ip) {
  dcp_listener *listener = dcp_listen(NULL, 0);
  char text[16];
  int state;
  need(listener != NULL);
  printf("listening %d\n", dcp_listener_port(listener));
  fflush(stdout);
  open_device(uri, ip);
  make_objects();
  const dcp_mr *offered[] = {mr};
  dcp_conn *conn = dcp_accept(listener, context, qp, offered, 1, PATIENCE_MS);
  need(conn != NULL);
  need(dcp_conn_receive(conn, text, sizeof text) > 0); /* the client's WRITE has arrived */
  for (char *c = bytes; *c; c++)
    *c = (char)toupper((unsigned char)*c);
  send(DCP_WR_SEND, (uint32_t)strlen(bytes) + 1, NULL);
  wait_for_completion();
  while ((state = dcp_conn_poll(conn)) == 1)
    dcp_poll(context);
  need(state == 0);
  printf("served \"%s\"\n", bytes);
  dcp_conn_close(conn);
  dcp_close_listener(listener);
  return 0;
}

static int ask(const char *uri, const char *ip, const char *host) {
  dcp_remote_mr remote = {.size = sizeof remote};
  open_device(uri, ip);
  make_objects();
  post_receive();
  dcp_conn *conn = dcp_connect(qp, host, NULL, 0, PATIENCE_MS);
  need(conn != NULL && dcp_conn_remote(conn, 0, &remote) == 0);
  strcpy(bytes, "hello, other process");
  send(DCP_WR_RDMA_WRITE, (uint32_t)strlen(bytes) + 1, &remote);
  wait_for_completion();
  need(dcp_conn_send(conn, "written") == 0);
  wait_for_completion(); /* of the receive */
  printf("answered \"%s\"\n", bytes);
  dcp_conn_close(conn);
  return 0;
}

int main(int argc, char **argv) {
  int code;
  if (argc != 3 && argc != 4) {
    fprintf(stderr, "usage: two_processes DEVICE IP [HOST:PORT]\n");
    return 2;
  }
  code = argc == 3 ? serve(argv[1], argv[2]) : ask(argv[1], argv[2], argv[3]);
  dcp_destroy_qp(qp);
  dcp_dereg_mr(mr);
  dcp_destroy_cq(cq);
  dcp_close(context);
  return code;
}
