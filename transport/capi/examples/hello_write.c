/* One RDMA WRITE between two devices in this process. Build:
 *   cc hello_write.c -o hello_write $(pkg-config --cflags --libs dcp) */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <dcp.h>

struct side {
  dcp_context *context;
  dcp_pd *pd;
  dcp_cq *cq;
  dcp_mr *mr;
  dcp_qp *qp;
  dcp_qp_address address;
};

static void need(int ok) {
  if (!ok) {
    fprintf(stderr, "hello_write: %s\n", dcp_last_error());
    exit(1);
  }
}

static void make(struct side *side) {
  dcp_qp_init_attr attr;
  need((side->pd = dcp_alloc_pd(side->context)) != NULL);
  need((side->cq = dcp_create_cq(side->context, 128)) != NULL);
  need((side->mr = dcp_alloc_mr(side->pd, 4096, DCP_ACCESS_REMOTE_WRITE)) != NULL);
  need(dcp_qp_init_attr_default(&attr, sizeof attr) == 0);
  attr.send_cq = side->cq;
  need((side->qp = dcp_create_qp(side->pd, &attr)) != NULL);
  side->address.size = sizeof side->address;
  need(dcp_query_qp_address(side->qp, &side->address) == 0);
}

static void close_side(struct side *side) {
  dcp_destroy_qp(side->qp);
  dcp_dereg_mr(side->mr);
  dcp_destroy_cq(side->cq);
  dcp_dealloc_pd(side->pd);
  dcp_close(side->context);
}

int main(void) {
  struct side client = {0}, server = {0};
  need(dcp_open_pair(NULL, NULL, &client.context, &server.context) == 0);
  make(&client);
  make(&server);
  /* Between two machines, the addresses, dcp_mr_addr and dcp_mr_rkey go over a socket of the program's own. */
  need(dcp_qp_connect(client.qp, &server.address, 0x1234) == 0);
  need(dcp_qp_connect(server.qp, &client.address, 0x1234) == 0);

  static const char text[] = "hello, remote memory";
  memcpy(dcp_mr_addr(client.mr), text, sizeof text);
  dcp_sge sge = {(uintptr_t)dcp_mr_addr(client.mr), sizeof text, dcp_mr_lkey(client.mr)};
  dcp_send_wr wr = {0}, *bad;
  wr.wr_id = 1;
  wr.opcode = DCP_WR_RDMA_WRITE;
  wr.send_flags = DCP_SEND_SIGNALED;
  wr.sg_list = &sge;
  wr.num_sge = 1;
  wr.remote_addr = (uintptr_t)dcp_mr_addr(server.mr);
  wr.rkey = dcp_mr_rkey(server.mr);
  need(dcp_post_send(client.qp, &wr, &bad) == 0);

  dcp_wc wc;
  int count;
  while ((count = dcp_poll_cq(client.cq, 1, &wc)) == 0)
    dcp_poll(server.context);
  need(count > 0);
  printf("%s: the server has \"%s\"\n", dcp_status_str(wc.status), (char *)dcp_mr_addr(server.mr));
  int failed = wc.status != DCP_WC_SUCCESS;
  close_side(&client);
  close_side(&server);
  return failed;
}
