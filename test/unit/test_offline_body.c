/* Requests as the offline model reads them: what is refused, how calls are
 * numbered, and memory that runs out at every point. */
#include "unit.h"

#include <ava.h>
#include <string.h>

#include "base/util.h"
#include "provider/dialect.h"
#include "provider/offline_body.h"

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(test_bad_bodies),
		cmocka_unit_test(test_numbers),
		cmocka_unit_test(test_memory),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
