/* SPDX-License-Identifier: BSD-2-Clause */
/* Socket addresses as text. */
#include <arpa/inet.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>

#include <handler/udp.h>

/* Digits only, nothing behind them. */
static int number_parse(const char *text, unsigned most, uint16_t *out)
{
	char *end;
	unsigned long value;

	if (text[0] < '0' || text[0] > '9')
		return -EINVAL;
	value = strtoul(text, &end, 10);
	if (*end || value > most)
		return -EINVAL;
	*out = (uint16_t)value;
	return 0;
}

/* "fe80::1%3": the scope is taken off. */
static int scope_parse(char *name, uint16_t *scope)
{
	char *percent = strchr(name, '%');

	if (!percent)
		return 0;
	*percent = 0;
	return number_parse(percent + 1, UINT16_MAX, scope);
}

int napi_udp_address_parse(const char *text, struct napi_udp_address *out)
{
	struct napi_udp_address a = {0};
	const char *colon = strrchr(text, ':');
	bool bracket = text[0] == '[';
	size_t size = colon ? (size_t)(colon - text) : 0;
	char name[UDP_ADDRESS_TEXT];
	struct ip ip;

	if (!size || size >= sizeof(name) || number_parse(colon + 1, UINT16_MAX, &a.port))
		return -EINVAL;
	memcpy(name, text, size);
	name[size] = 0;
	if (bracket) {
		if (size < 2 || name[size - 1] != ']')
			return -EINVAL;
		name[size - 1] = 0;
		if (scope_parse(name + 1, &a.scope) || inet_pton(AF_INET6, name + 1, a.ip) != 1)
			return -EINVAL;
	} else {
		uint8_t bytes[4];

		if (inet_pton(AF_INET, name, bytes) != 1)
			return -EINVAL;
		ip = ip_load4(bytes);
		memcpy(a.ip, &ip, sizeof(a.ip));
	}
	*out = a;
	return 0;
}

int napi_udp_address_format(const struct napi_udp_address *a, char *text, size_t size)
{
	struct ip ip = udp_address_ip(a);
	char name[INET6_ADDRSTRLEN];

	if (ip_is4(ip)) {
		inet_ntop(AF_INET, ip_bytes4(&ip), name, sizeof(name));
		return snprintf(text, size, "%s:%u", name, a->port);
	}
	inet_ntop(AF_INET6, a->ip, name, sizeof(name));
	if (a->scope)
		return snprintf(text, size, "[%s%%%u]:%u", name, a->scope, a->port);
	return snprintf(text, size, "[%s]:%u", name, a->port);
}
