/* SPDX-License-Identifier: BSD-2-Clause */
/* The bridge's control side: its making and end, its ports, VLANs, ageing and what can be seen. */
#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include <core/engine.h>
#include <handler/bridge.h>

#define ENTRIES_DEFAULT 8192
#define AGEING_DEFAULT 300
#define AGEING_MAX 1000000 /* s, as the kernel's */
#define PVID_DEFAULT 1

static struct bridge *bridge_of(struct handler *handler)
{
	return (struct bridge *)handler;
}

static struct port *port_at(const struct bridge *b, unsigned number)
{
	return atomic_load_explicit(&b->port[number], memory_order_relaxed);
}

static int number_of(const struct bridge *b, const struct port *port)
{
	for (unsigned i = 0; i < BRIDGE_PORTS_MAX; i++) {
		if (port_at(b, i) == port)
			return (int)i;
	}
	return -ENOENT;
}

static int bridge_port_add(struct handler *handler, struct port *port, struct error *err)
{
	struct bridge *b = bridge_of(handler);
	int number = number_of(b, NULL);

	if (number < 0)
		return error_set(err, -ENOSPC,
				 "%s: the bridge has %d ports already, which is its limit",
				 port->name, BRIDGE_PORTS_MAX);
	b->number[port->index] = (uint8_t)number;
	b->down &= ~(UINT64_C(1) << number);
	if (b->vlans)
		vlans_add(b->vlans, (unsigned)number, PVID_DEFAULT, true, true);
	atomic_store_explicit(&b->port[number], port, memory_order_release);
	atomic_store_explicit(&b->members, b->members | UINT64_C(1) << number,
			      memory_order_release);
	return 0;
}

static void bridge_port_remove(struct handler *handler, struct port *port)
{
	struct bridge *b = bridge_of(handler);
	int number = number_of(b, port);

	if (number < 0)
		return;
	atomic_store_explicit(&b->members, b->members & ~(UINT64_C(1) << number),
			      memory_order_relaxed);
	atomic_store_explicit(&b->port[number], NULL, memory_order_relaxed);
	fdb_purge(b->table, (uint32_t)number, FDB_ANY);
	if (b->vlans)
		vlans_clear(b->vlans, (unsigned)number);
}

/* What is behind a port that went down may come back elsewhere, and must not wait for its age. */
static void forget_down(struct bridge *b)
{
	for (unsigned i = 0; i < BRIDGE_PORTS_MAX; i++) {
		struct port *port = port_at(b, i);
		uint64_t bit = UINT64_C(1) << i;

		if (!port || port_sendable(port)) {
			b->down &= ~bit;
		} else if (!(b->down & bit)) {
			b->down |= bit;
			fdb_purge(b->table, i, FDB_ANY);
		}
	}
}

static uint32_t seconds(int64_t now)
{
	return (uint32_t)(now / NSEC_PER_SEC);
}

static void bridge_tick(struct handler *handler, int64_t now)
{
	struct bridge *b = bridge_of(handler);

	forget_down(b);
	fdb_age(b->table, seconds(now), b->ageing);
}

static void bridge_destroy(struct handler *handler)
{
	struct bridge *b = bridge_of(handler);

	fdb_destroy(b->table);
	free(b->vlans);
	free(b);
}

/*
 * Merging pays where another port takes what comes of it in one piece: with a system call for each
 * packet it saves most of them. To a port that takes single packets it only costs.
 */
static unsigned bridge_merges(struct handler *handler, struct port *in)
{
	const struct bridge *b = bridge_of(handler);
	unsigned types = 0;

	for (unsigned i = 0; i < BRIDGE_PORTS_MAX; i++) {
		const struct port *port = port_at(b, i);

		if (port && port != in)
			types |= port_gro_types(port);
	}
	return types;
}

static const struct handler_ops bridge_ops = {
	.name = "bridge",
	.input = bridge_input,
	.port_add = bridge_port_add,
	.port_remove = bridge_port_remove,
	.merges = bridge_merges,
	.tick = bridge_tick,
	.destroy = bridge_destroy,
};

static int config_check(const struct bridge_config *config, struct error *err)
{
	uint32_t entries = config->entries;

	if (entries & (entries - 1) || entries > FDB_ENTRIES_MAX)
		return error_set(err, -EINVAL,
				 "bridge: entries=%u is not a power of two from 1 to %u", entries,
				 FDB_ENTRIES_MAX);
	if (config->ageing_seconds > AGEING_MAX)
		return error_set(err, -EINVAL, "bridge: ageing=%u is more than %d seconds",
				 config->ageing_seconds, AGEING_MAX);
	return 0;
}

int bridge_create(struct engine *engine, const struct bridge_config *config, struct handler **out,
		  struct error *err)
{
	int rc = config_check(config, err);
	struct bridge *b;

	if (rc)
		return rc;
	b = aligned_alloc(_Alignof(struct bridge), sizeof(*b));
	if (!b)
		return error_set(err, -ENOMEM, "bridge: out of memory");
	memset(b, 0, sizeof(*b));
	b->handler = (struct handler){.ops = &bridge_ops, .engine = engine};
	b->ageing = config->ageing_seconds ? config->ageing_seconds : AGEING_DEFAULT;
	b->header_mask = config->vlan_filtering ? UINT64_MAX : UINT32_MAX;
	rc = fdb_create(config->entries ? config->entries : ENTRIES_DEFAULT, &b->table);
	if (rc) {
		free(b);
		return error_set(err, rc, "bridge: no table of addresses: %s", strerror(-rc));
	}
	if (config->vlan_filtering && !(b->vlans = vlans_create()))
		rc = -ENOMEM;
	if (!rc)
		rc = engine_handler_register(engine, &b->handler);
	if (rc) {
		bridge_destroy(&b->handler);
		return error_set(err, rc, "bridge: cannot be added to the engine: %s",
				 strerror(-rc));
	}
	*out = &b->handler;
	return 0;
}

static int vlan_add(struct bridge *b, struct port *port, const struct bridge_vlan *vlan,
		    struct error *err)
{
	int number = number_of(b, port);

	if (vlan->vid < 1 || vlan->vid > VLAN_ID_MAX)
		return error_set(err, -EINVAL, "%s: VLAN %u is not in 1..%d", port->name, vlan->vid,
				 VLAN_ID_MAX);
	if (!b->vlans)
		return error_set(
			err, -EINVAL,
			"%s: the bridge has no VLANs, as it was made without vlan_filtering",
			port->name);
	if (number < 0)
		return error_set(err, -ENOENT, "%s: the port is not one of this bridge",
				 port->name);
	vlans_add(b->vlans, (unsigned)number, vlan->vid, vlan->pvid, vlan->untagged);
	return 0;
}

int bridge_vlan_add(struct handler *bridge, struct port *port, const struct bridge_vlan *vlan,
		    struct error *err)
{
	int rc;

	engine_lock(bridge->engine);
	rc = vlan_add(bridge_of(bridge), port, vlan, err);
	engine_unlock(bridge->engine);
	return rc;
}

int bridge_vlan_remove(struct handler *bridge, struct port *port, uint16_t vid)
{
	struct bridge *b = bridge_of(bridge);
	int rc = -ENOENT, number;

	if (vid < 1 || vid > VLAN_ID_MAX)
		return -EINVAL;
	engine_lock(bridge->engine);
	number = number_of(b, port);
	if (b->vlans && number >= 0 && vlans_remove(b->vlans, (unsigned)number, vid)) {
		fdb_purge(b->table, (uint32_t)number, vid);
		rc = 0;
	}
	engine_unlock(bridge->engine);
	return rc;
}

static void entry_fill(const struct bridge *b, const struct fdb_copy *c, uint32_t now,
		       struct bridge_entry *out)
{
	struct port *port = port_at(b, c->port);

	for (unsigned i = 0; i < sizeof(out->address); i++)
		out->address[i] = (uint8_t)(c->key >> 8 * i);
	out->vid = c->key >> 48 & 0xfff;
	out->port = port ? port->index : UINT16_MAX;
	/* A runner's second may have begun before the caller's. */
	out->age_seconds = (int32_t)(now - c->stamp) > 0 ? now - c->stamp : 0;
}

uint32_t bridge_entries(struct handler *bridge, struct bridge_entry *out, uint32_t n)
{
	struct bridge *b = bridge_of(bridge);
	uint32_t now = seconds(machine_now(engine_machine(bridge->engine)));
	uint32_t position = 0, total = 0, copied;
	struct fdb_copy copy[64];

	engine_lock(bridge->engine);
	do {
		copied = fdb_copy(b->table, &position, copy, 64);
		for (uint32_t i = 0; i < copied; i++, total++) {
			if (total < n)
				entry_fill(b, &copy[i], now, &out[total]);
		}
	} while (copied == 64);
	engine_unlock(bridge->engine);
	return total;
}

void bridge_stats_read(struct handler *bridge, struct bridge_stats *out)
{
	struct bridge *b = bridge_of(bridge);

	*out = (struct bridge_stats){
		.learned = atomic_load_explicit(&b->table->learned, memory_order_relaxed),
		.moved = atomic_load_explicit(&b->table->moved, memory_order_relaxed),
		.aged = atomic_load_explicit(&b->table->aged, memory_order_relaxed),
		.entries = fdb_entries(b->table),
	};
	for (unsigned i = 0; i < BRIDGE_SHARDS; i++) {
		struct bridge_shard *shard = &b->shard[i];

		out->flooded += atomic_load_explicit(&shard->flooded, memory_order_relaxed);
		out->table_full += atomic_load_explicit(&shard->table_full, memory_order_relaxed);
	}
}

void bridge_flush(struct handler *bridge)
{
	engine_lock(bridge->engine);
	fdb_purge(bridge_of(bridge)->table, FDB_ANY, FDB_ANY);
	engine_unlock(bridge->engine);
}
