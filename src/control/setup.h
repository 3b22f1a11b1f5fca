/* SPDX-License-Identifier: BSD-2-Clause */
/*
 * A setup: everything `napier run` was asked, from its command line or from a file.
 *
 * It is plain data; service.h makes an engine of it.
 */
#ifndef CONTROL_SETUP_H
#define CONTROL_SETUP_H

#include <net/if.h>

#include <napier/bridge.h>
#include <napier/napier.h>

#include <control/engine_wish.h>
#include <control/wish.h>

#define SETUP_NAME_MAX 32
#define SETUP_PORTS_MAX 64
#define SETUP_WHERE 128
#define SETUP_FILE_MAX (1u << 20) /* bytes of a configuration */
#define VLAN_MAX 4094

enum setup_handler { SETUP_BRIDGE, SETUP_DROP };

struct setup_queue {
	int queue; /* < 0: all of the port, and those to come */
	struct wish wish;
};

struct setup_port {
	struct port_config config;
	bool wait; /* the device may come later */
	struct setup_queue *queues;
	uint32_t queues_n;
	struct wish tx; /* of its TX NAPIs; with config.tx_napi only */
	/* The TAP by which this host gets what the port receives; empty: a port of the handler's */
	char host[IFNAMSIZ];
	struct wish host_wish; /* of the TAP's NAPIs; with a host only */
	uint16_t pvid;	       /* 0: none */
	/* One bit a VLAN; a pvid that is in neither leaves untagged. */
	uint64_t tagged[VLAN_MAX / 64 + 1], untagged[VLAN_MAX / 64 + 1];
	char where[SETUP_WHERE]; /* "bridge.conf:12: " before errors about it, or "" */
};

struct setup_cpu {
	unsigned cpu;
	struct cpu_settings settings;
	char where[SETUP_WHERE]; /* as a port's */
};

struct setup {
	struct engine_config engine; /* machine, counters_path, log: not set here */
	bool interrupt_set;	     /* the class of irq/N was asked for */
	bool realtime;		     /* irq/N above ordinary priority, if the rights allow */
	struct wish backlog;	     /* of the backlogs' NAPIs */
	char name[SETUP_NAME_MAX];
	enum setup_handler handler;
	struct bridge_config bridge;
	struct setup_port *ports[SETUP_PORTS_MAX];
	uint32_t ports_n;
	struct setup_cpu *cpus; /* of single engine CPUs */
	uint32_t cpus_n;
};

/* The defaults. */
void setup_init(struct setup *setup);
void setup_free(struct setup *setup);

/* The engine's name is a directory's: letters, digits, '_', '-' and '.', not first. */
int setup_name(struct setup *setup, const char *name, struct error *err);
/* What a name that no port can have means to `napier set`; NULL: a port can have it. */
const char *setup_reserved(const char *name);
/* `napier set` is able to say it, and one line of a table to hold it. */
bool setup_sayable(const char *name);
int setup_handler_parse(const char *name, enum setup_handler *out, struct error *err);

/* "xdp:eth0,queues=2,wait=yes": a port of the setup's, to be filled in further. */
int setup_port_add(struct setup *setup, const char *spec, struct setup_port **out,
		   struct error *err);
/* The same as `host=yes` in its text, unless that says host= itself. */
int setup_port_host(struct setup_port *port, struct error *err);
/* One that belongs to nobody; setup_port_free frees it. */
int setup_port_create(const char *spec, struct setup_port **out, struct error *err);
void setup_port_free(struct setup_port *port);
/* What is set for an engine CPU, made when there is nothing; NULL: no memory. */
struct setup_cpu *setup_cpu(struct setup *setup, unsigned cpu);
/* What is wished of a queue (< 0: of all), made when there are none; NULL: no memory. */
struct wish *setup_port_wish(struct setup_port *port, int queue);

/* One `key=value`: those of wish.h, and the VLANs. -ENOENT, -EINVAL, -ERANGE. */
#define SETUP_PORT_KEYS WISH_KEYS ", pvid, tagged, untagged"
int setup_port_key(struct setup_port *port, const char *key, const char *value, struct error *err);
bool setup_port_vlans(const struct setup_port *port);

/* What one key cannot see: VLANs without filtering, nothing to do. */
int setup_port_check(const struct setup *setup, const struct setup_port *port, struct error *err);
int setup_check(const struct setup *setup, struct error *err);

/*
 * Reads a configuration (libconfig) into a setup that setup_init made. Every error starts with
 * "FILE:LINE: ". -EINVAL, -ERANGE, and what reading the file says. `setup` needs setup_free also
 * after an error.
 */
int setup_file_read(struct setup *setup, const char *path, struct error *err);
/* The same from memory; text ends with a NUL, path is for errors only. */
int setup_text_read(struct setup *setup, const char *path, const char *text, struct error *err);

#endif
