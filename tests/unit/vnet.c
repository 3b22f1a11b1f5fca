/* SPDX-License-Identifier: BSD-2-Clause */
#include "pool_context.h"

#include <napier/port.h>

#include <port/vnet.h>

#define FRAMES 128
#define HEADER sizeof(struct virtio_net_hdr)

static uint8_t spill[VNET_SPILL];

static int begin(void **state)
{
	(void)state;
	pool_context_begin(FRAMES);
	return 0;
}

static int end(void **state)
{
	(void)state;
	pool_context_end();
	return 0;
}

/* As the kernel would: header and bytes into what vnet_receive_iov describes. */
static bool receive(struct packet **p, const struct virtio_net_hdr *header, const uint8_t *bytes,
		    uint32_t size)
{
	struct virtio_net_hdr got;
	struct iovec iov[3];
	uint32_t first;

	assert_int_equal(packet_alloc(&context.cache, p, 1), 1);
	vnet_receive_iov(pool, *p, &got, spill, iov);
	assert_int_equal(iov[0].iov_len, HEADER);
	assert_true(size <= iov[1].iov_len + iov[2].iov_len);
	memcpy(iov[0].iov_base, header, HEADER);
	first = size < iov[1].iov_len ? size : (uint32_t)iov[1].iov_len;
	memcpy(iov[1].iov_base, bytes, first);
	memcpy(iov[2].iov_base, bytes + first, size - first);
	return vnet_receive(&context, *p, &got, spill, (uint32_t)HEADER + size);
}

/* What writev would give to the kernel. */
static uint32_t flatten(const struct iovec *iov, uint32_t n, uint8_t *bytes)
{
	uint32_t size = 0;

	for (uint32_t i = 0; i < n; i++) {
		memcpy(bytes + size, iov[i].iov_base, iov[i].iov_len);
		size += (uint32_t)iov[i].iov_len;
	}
	return size;
}

static void plain(void **state)
{
	const struct virtio_net_hdr none = {0};
	uint8_t bytes[60] = "the quick brown fox jumps over the lazy dog";
	struct virtio_net_hdr header;
	struct iovec iov[2];
	struct packet *p;

	(void)state;
	assert_true(receive(&p, &none, bytes, sizeof(bytes)));
	assert_int_equal(p->len, sizeof(bytes));
	assert_int_equal(p->total, sizeof(bytes));
	assert_null(p->next);
	assert_int_equal(p->flags, 0);

	memset(&header, 0xff, sizeof(header));
	assert_int_equal(vnet_transmit(p, &header, iov, 2), 2);
	assert_memory_equal(&header, &none, HEADER);
	assert_ptr_equal(iov[0].iov_base, &header);
	assert_ptr_equal(iov[1].iov_base, p->data);
	assert_int_equal(iov[1].iov_len, sizeof(bytes));
	assert_int_equal(vnet_transmit(p, &header, iov, 1), 0);
	assert_int_equal(vnet_transmit(p, &header, iov, 0), 0);
	packet_free(&context.cache, &p, 1);
}

static void checksums(void **state)
{
	const struct virtio_net_hdr partial = {
		.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM, .csum_start = 34, .csum_offset = 16};
	const struct virtio_net_hdr valid = {.flags = VIRTIO_NET_HDR_F_DATA_VALID};
	uint8_t bytes[60] = {0};
	struct virtio_net_hdr header;
	struct iovec iov[2];
	struct packet *p;

	(void)state;
	assert_true(receive(&p, &partial, bytes, sizeof(bytes)));
	assert_int_equal(p->flags, PACKET_CSUM_PARTIAL);
	assert_int_equal(p->csum_start, 34);
	assert_int_equal(p->csum_offset, 16);
	assert_int_equal(vnet_transmit(p, &header, iov, 2), 2);
	assert_memory_equal(&header, &partial, HEADER);
	packet_free(&context.cache, &p, 1);

	assert_true(receive(&p, &valid, bytes, sizeof(bytes)));
	assert_int_equal(p->flags, PACKET_CSUM_VALID);
	packet_free(&context.cache, &p, 1);
}

/* TCP with 12 bytes of options: 14 + 20 + 32 bytes of headers. */
static void super_packets(void **state)
{
	struct virtio_net_hdr tcp = {.flags = VIRTIO_NET_HDR_F_NEEDS_CSUM,
				     .gso_type = VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN,
				     .hdr_len = 66,
				     .gso_size = 1448,
				     .csum_start = 34,
				     .csum_offset = 16};
	struct virtio_net_hdr udp = tcp;
	uint8_t *bytes = calloc(1, 65550), *again = malloc(66000);
	struct virtio_net_hdr header;
	struct iovec iov[VNET_IOV_MAX];
	struct packet *p;
	uint32_t n;

	(void)state;
	for (uint32_t i = 0; i < 65550; i++)
		bytes[i] = (uint8_t)(i * 7 + i / 256);
	bytes[34 + 12] = 0x80;
	assert_true(receive(&p, &tcp, bytes, 65550));
	assert_int_equal(p->flags, PACKET_CSUM_PARTIAL | PACKET_GSO);
	assert_int_equal(p->gso_type, VIRTIO_NET_HDR_GSO_TCPV4 | VIRTIO_NET_HDR_GSO_ECN);
	assert_int_equal(p->gso_size, 1448);
	assert_int_equal(p->len, 1792);
	assert_int_equal(p->total, 65550);
	n = vnet_transmit(p, &header, iov, VNET_IOV_MAX);
	assert_int_equal(n, 1 + (65550 + 1791) / 1792);
	assert_memory_equal(&header, &tcp, HEADER);
	assert_int_equal(flatten(iov + 1, n - 1, again), 65550);
	assert_memory_equal(again, bytes, 65550);
	packet_free(&context.cache, &p, 1);

	udp.gso_type = VIRTIO_NET_HDR_GSO_UDP_L4;
	udp.csum_offset = 6;
	udp.hdr_len = 42;
	assert_true(receive(&p, &udp, bytes, 3000));
	assert_int_equal(vnet_transmit(p, &header, iov, VNET_IOV_MAX), 3);
	assert_memory_equal(&header, &udp, HEADER);
	packet_free(&context.cache, &p, 1);
	free(bytes);
	free(again);
}

/* Around each place where another frame begins. */
static void sizes_at_frame_ends(void **state)
{
	const struct virtio_net_hdr none = {0};
	uint8_t bytes[4 * 1792], again[4 * 1792];
	struct virtio_net_hdr header;
	struct iovec iov[VNET_IOV_MAX];

	(void)state;
	for (uint32_t i = 0; i < sizeof(bytes); i++)
		bytes[i] = (uint8_t)(i ^ i >> 8);
	for (uint32_t frames = 1; frames < 4; frames++) {
		for (uint32_t size = frames * 1792 - 2; size <= frames * 1792 + 2; size++) {
			struct packet *p;
			uint32_t n;

			assert_true(receive(&p, &none, bytes, size));
			assert_int_equal(p->total, size);
			n = vnet_transmit(p, &header, iov, VNET_IOV_MAX);
			assert_int_equal(n, 1 + (size + 1791) / 1792);
			assert_int_equal(flatten(iov + 1, n - 1, again), size);
			assert_memory_equal(again, bytes, size);
			packet_free(&context.cache, &p, 1);
		}
	}
}

static void drops_are_counted(void **state)
{
	const struct virtio_net_hdr none = {0};
	struct packet *held[FRAMES], *p;
	uint8_t bytes[4000] = {0};
	uint32_t n = 0;

	(void)state;
	assert_false(receive(&p, &none, bytes, 13));
	assert_int_equal(counter_read(&context.own.dropped[DROP_TOO_SHORT]), 1);
	assert_false(receive(&p, &none, bytes, 0));
	assert_int_equal(counter_read(&context.own.dropped[DROP_TOO_SHORT]), 2);

	/* Two frames left, three wanted: the one that there was comes back. */
	while (n < FRAMES - 2)
		n += packet_alloc(&context.cache, held + n, 1);
	assert_false(receive(&p, &none, bytes, sizeof(bytes)));
	assert_int_equal(counter_read(&context.own.dropped[DROP_POOL_EMPTY]), 1);
	assert_int_equal(counter_read(&context.own.received), 3);
	assert_int_equal(counter_read(&context.own.received_bytes), 13 + sizeof(bytes));
	packet_free(&context.cache, held, n);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(plain, begin, end),
		cmocka_unit_test_setup_teardown(checksums, begin, end),
		cmocka_unit_test_setup_teardown(super_packets, begin, end),
		cmocka_unit_test_setup_teardown(sizes_at_frame_ends, begin, end),
		cmocka_unit_test_setup_teardown(drops_are_counted, begin, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
