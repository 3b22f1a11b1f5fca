/* SPDX-License-Identifier: BSD-2-Clause */
#include <errno.h>
#include <stdlib.h>

#include <napier/handler.h>

#include <core/engine.h>

static void drop_input(struct handler *handler, struct context *context, struct port *in,
		       struct packet **v, uint32_t n)
{
	(void)handler;
	(void)in;
	packet_drop(context, v, n, DROP_HANDLER);
}

static void drop_destroy(struct handler *handler)
{
	free(handler);
}

static const struct handler_ops drop_ops = {
	.name = "drop",
	.input = drop_input,
	.destroy = drop_destroy,
};

int drop_handler_create(struct engine *engine, struct handler **out)
{
	struct handler *handler = calloc(1, sizeof(*handler));
	int rc;

	if (!handler)
		return -ENOMEM;
	handler->ops = &drop_ops;
	handler->engine = engine;
	rc = engine_handler_register(engine, handler);
	if (rc) {
		free(handler);
		return rc;
	}
	*out = handler;
	return 0;
}
