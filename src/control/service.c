/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <sched.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <unistd.h>

#include <control/client.h>
#include <control/service.h>

/* Interrupt runners have to get in between ordinary work, and no more than that. */
#define INTERRUPT_PRIORITY 50

#define STOP_TIMEOUT (5 * NSEC_PER_SEC) /* for all queues together */

void service_log(struct service *service, enum log_level level, const char *format, ...)
{
	const struct engine_config *config = &service->setup->engine;
	char line[512];
	va_list arguments;

	if (!config->log)
		return;
	va_start(arguments, format);
	vsnprintf(line, sizeof(line), format, arguments);
	va_end(arguments);
	config->log(config->log_arg, level, line);
}

void service_done(struct service *service)
{
	uint64_t one = 1;

	/* An eventfd at 0 takes this. */
	if (!service->done_told && write(service->done, &one, sizeof(one)) == sizeof(one))
		service->done_told = true;
}

int service_done_fd(const struct service *service)
{
	return service->done;
}

static struct step service_step(void *arg)
{
	struct service *service = arg;
	int64_t now = machine_now(service->machine);
	int64_t next, again;

	if (!atomic_load_explicit(&service->ready, memory_order_acquire))
		return STEP(STEP_WAIT);
	next = server_work(service->server, now);
	again = monitor_work(service->monitor, now);
	if (again < next)
		next = again;
	again = service_ports_retry(service, now);
	if (again < next)
		next = again;
	if (!service->done_told && service_ports_finite(service)) {
		if (service_ports_ended(service))
			service_done(service);
		else if (now + SERVICE_ENDED < next)
			next = now + SERVICE_ENDED;
	}
	return next <= now ? STEP(STEP_YIELD) : STEP_UNTIL(next);
}

/* Where the process may not do that, the engine says so and goes on without. */
static void interrupts_place(struct setup *setup)
{
	if (!setup->realtime || setup->interrupt_set)
		return;
	setup->engine.interrupt.class = RUNNER_FIFO;
	setup->engine.interrupt.level = INTERRUPT_PRIORITY;
}

/* The engine has said why, for whom it concerns; not how to have it so in peace. */
static void interrupts_tell(struct service *service)
{
	const struct setup *setup = service->setup;
	const struct cpu_record *cpu = counters_cpu_at(engine_counters(service->engine), 0);

	if (!setup->realtime || setup->interrupt_set)
		return;
	if (sched_getscheduler(atomic_load(&cpu->irq_tid)) == SCHED_OTHER)
		service_log(service, LEVEL_WARNING,
			    "interrupts are taken at ordinary priority; with --no-realtime that "
			    "is what is asked for, and not warned of");
}

static int handler_make(struct service *service, struct error *err)
{
	int rc;

	if (service->setup->handler == SETUP_BRIDGE)
		return bridge_create(service->engine, &service->setup->bridge, &service->handler,
				     err);
	rc = drop_handler_create(service->engine, &service->handler);
	return rc ? error_set(err, rc, "handler drop: %s", strerror(-rc)) : 0;
}

static int control_start(struct service *service, struct error *err)
{
	struct runner_config config = {
		.name = "napier/control",
		.step = service_step,
		.arg = service,
	};
	char path[RUNDIR_PATH_MAX + 10];
	int rc = runner_start(service->machine, &config, &service->runner, err);

	if (rc)
		return rc;
	rc = monitor_open(service->runner, service_link, service, &service->monitor);
	if (rc)
		return error_set(err, rc, "link monitor: %s", strerror(-rc));
	rundir_file(&service->rundir, "control", path);
	return server_open(path, service->runner, service_answer, service, &service->server, err);
}

/* It is about what stands in this line of the configuration; "": in none. */
static int line_name(const char *where, struct error *err, int rc)
{
	struct error inner;

	if (!err)
		return rc;
	inner = *err;
	return error_set(err, rc, "%s%.400s", where, inner.text);
}

static int ports_open(struct service *service, struct error *err)
{
	struct setup *setup = service->setup;

	while (setup->ports_n) {
		struct service_port *port;
		int rc = service_port_add(service, setup->ports[0], &port, err);

		if (rc)
			return line_name(setup->ports[0]->where, err, rc);
		setup->ports_n--;
		memmove(&setup->ports[0], &setup->ports[1],
			setup->ports_n * sizeof(setup->ports[0]));
	}
	return 0;
}

static void ports_log(struct service *service)
{
	for (uint32_t i = 0; i < service->ports_n; i++) {
		const struct port *port = service->ports[i]->port;

		if (port)
			service_log(service, LEVEL_INFO, "port %s: %s, %s%s%u queue%s", port->name,
				    port->spec, port->mode, port->mode[0] ? ", " : "", port->queues,
				    port->queues == 1 ? "" : "s");
	}
}

static int cpus_set(struct service *service, struct error *err)
{
	const struct setup *setup = service->setup;

	for (uint32_t i = 0; i < setup->cpus_n; i++) {
		const struct setup_cpu *cpu = &setup->cpus[i];
		int rc = engine_cpu_set(service->engine, cpu->cpu, &cpu->settings, err);

		if (rc)
			return line_name(cpu->where, err, rc);
	}
	return 0;
}

/* Kept for when the backlogs are opened. */
static int backlog_wish_set(struct service *service, struct error *err)
{
	struct queue_settings settings;
	int rc = wish_settings(&service->setup->backlog, &settings, err);

	if (rc || wish_empty(&service->setup->backlog))
		return rc;
	return engine_queue_set(service->engine, "backlog", -1, &settings, NULL, err);
}

static int service_start(struct service *service, struct error *err)
{
	struct engine_config *config = &service->setup->engine;
	char counters[RUNDIR_PATH_MAX + 10], restore[RUNDIR_PATH_MAX + 10];
	int rc;

	rc = rundir_lock(&service->rundir, err);
	if (!rc)
		rc = machine_host_create(&service->machine, err);
	if (rc)
		return rc;
	rundir_file(&service->rundir, "counters", counters);
	config->machine = service->machine;
	config->counters_path = counters;
	rundir_file(&service->rundir, "restore", restore);
	engine_restore(restore, config->log, config->log_arg);
	config->restore_path = restore;
	hosted_restore(&service->rundir, machine_now(service->machine), config->log,
		       config->log_arg);
	interrupts_place(service->setup);
	rc = engine_create(config, &service->engine, err);
	config->counters_path = NULL;
	if (!rc)
		interrupts_tell(service);
	config->restore_path = NULL;
	if (!rc)
		rc = cpus_set(service, err);
	if (!rc)
		rc = backlog_wish_set(service, err);
	if (!rc)
		rc = handler_make(service, err);
	if (!rc)
		rc = control_start(service, err);
	if (!rc)
		rc = ports_open(service, err);
	if (!rc)
		rc = service_ports_start(service, err);
	if (rc)
		return rc;
	/* The ports are the control runner's from then on, which may be asked to remove one. */
	ports_log(service);
	atomic_store_explicit(&service->ready, true, memory_order_release);
	runner_wake(service->runner);
	return 0;
}

int service_open(struct setup *setup, const char *run_base,
		 void (*log)(void *arg, enum log_level level, const char *line), void *log_arg,
		 struct service **out, struct error *err)
{
	struct service *service = calloc(1, sizeof(*service));
	int rc;

	if (!service)
		return error_set(err, -ENOMEM, "no memory");
	service->setup = setup;
	service->retry = TIME_NEVER;
	service->rundir.lock = -1;
	setup->engine.log = log;
	setup->engine.log_arg = log_arg;
	service->done = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
	if (service->done < 0)
		rc = error_set(err, -errno, "eventfd: %s", strerror(errno));
	else
		rc = rundir_find(&service->rundir, run_base, setup->name, err);
	if (!rc)
		rc = service_start(service, err);
	if (rc) {
		service_stop(service);
		service_close(service, NULL);
		return rc;
	}
	*out = service;
	return 0;
}

static bool backlogs_empty(void *arg)
{
	const struct counters_file *file = arg;

	for (uint32_t i = 0; i < file->cpus; i++)
		if (counter_read(&counters_cpu_at(file, i)->backlog.length))
			return false;
	return true;
}

/* What stands in backlogs is still handled; then nothing polls those either. */
static void backlogs_stop(struct service *service, int64_t deadline)
{
	struct port *backlog = engine_port_find(service->engine, "backlog");

	if (!backlog)
		return;
	machine_wait(service->machine, backlogs_empty, (void *)engine_counters(service->engine),
		     deadline);
	for (uint32_t q = 0; q < backlog->queues; q++)
		napi_disable(backlog->queue[q].napi, STOP_TIMEOUT);
}

static void port_stop(struct service *service, struct port *port, int64_t deadline)
{
	for (uint32_t q = 0; q < port->queues; q++) {
		int64_t left = deadline - machine_now(service->machine);

		if (napi_disable(port->queue[q].napi, left > 0 ? left : 0))
			service_log(service, LEVEL_WARNING,
				    "%s/%u: its poll did not end within the 5 s that all have",
				    port->name, q);
	}
}

/* All are disabled before any is closed: what one still forwards, the others still send. */
static void polling_stop(struct service *service)
{
	int64_t deadline = service->machine ? machine_now(service->machine) + STOP_TIMEOUT : 0;

	for (uint32_t i = 0; i < service->ports_n; i++) {
		struct service_port *sp = service->ports[i];

		if (sp->port)
			port_stop(service, sp->port, deadline);
		if (sp->hosted)
			port_stop(service, sp->hosted->tap, deadline);
	}
	if (service->engine)
		backlogs_stop(service, deadline);
}

void service_stop(struct service *service)
{
	if (service->runner)
		runner_stop(service->runner);
	service->runner = NULL;
	if (service->server)
		server_close(service->server);
	service->server = NULL;
	service_ports_return(service);
	polling_stop(service);
}

int service_close(struct service *service, struct error *err)
{
	int rc = 0;

	service_ports_free(service);
	if (service->monitor)
		monitor_close(service->monitor);
	if (service->engine) {
		rc = engine_check(service->engine, err);
		engine_destroy(service->engine);
	}
	if (service->machine)
		machine_destroy(service->machine);
	rundir_close(&service->rundir);
	if (service->done >= 0)
		close(service->done);
	free(service);
	return rc;
}
