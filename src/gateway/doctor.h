/* The checks of `ava doctor` that need avad's code for config.yaml and services. Prints an
 * object of JSON to stdout and changes nothing:
 *   {"checks":[{"name","ok","detail"}],
 *    "local_servers":[{"base_url","kind","models":["…"],"used":bool}],
 *    "settings":{"runs.max":8,…}}
 * Keys are never printed. */
#ifndef GATEWAY_DOCTOR_H
#define GATEWAY_DOCTOR_H

#include <stdbool.h>

struct ava_error;

/* `avad --doctor`. Models of local servers are tried, with a short call; `paid` (`avad --try`):
 * those of services too. `page_lacks`: of the page, or "". 0: printed, whatever was found. */
int doctor_print(bool paid, const char *page_lacks, struct ava_error *err);

#endif
