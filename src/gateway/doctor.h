/* What `ava doctor` asks avad, which links what reads config.yaml and speaks
 * to services. One object of JSON on stdout; nothing is changed:
 *   {"checks":[{"name","ok","detail"}],
 *    "local_servers":[{"base_url","kind","models":["…"],"used":bool}],
 *    "settings":{"runs.max":8,…}}
 * Keys are never in it. */
#ifndef GATEWAY_DOCTOR_H
#define GATEWAY_DOCTOR_H

#include <stdbool.h>

struct ava_error;

/* `avad --doctor`. Models of local servers are tried, with a short call; `paid` (`avad --try`):
 * those of services too. `page_lacks`: of the page, or "". 0: it was printed, whatever it says. */
int doctor_print(bool paid, const char *page_lacks, struct ava_error *err);

#endif
