/* One copy of a model for all that use it: ten thousand runs of one model wait with
 * a pointer each. From any thread. */
#ifndef PROVIDER_MODEL_SHARE_H
#define PROVIDER_MODEL_SHARE_H

#include "provider/model.h"

/* The same as *m, good until it is given back; NULL: no memory. */
const struct model *model_share(const struct model *m);
void model_unshare(const struct model *m); /* NULL is fine */

#endif
