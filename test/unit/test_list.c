/* The intrusive list: order, removal while walking, splicing. */
#include "unit.h"

#include "base/list.h"

struct item {
	int n;
	struct list link;
};

static struct item items[6];
static struct list head, other;

static int setup(void **state)
{
	list_init(&head);
	list_init(&other);
	for (int i = 0; i < 6; i++) {
		items[i].n = i;
		list_init(&items[i].link);
	}
	return 0;
}

/* The numbers in order as one decimal number, also walked backwards. */
static int digits(struct list *l)
{
	int n = 0, back = 0, scale = 1;

	LIST_EACH (l, at, next)
		n = n * 10 + LIST_ENTRY(at, struct item, link)->n;
	for (struct list *at = l->prev; at != l; at = at->prev, scale *= 10)
		back += LIST_ENTRY(at, struct item, link)->n * scale;
	assert_int_equal(n, back);
	return n;
}

TEST(order)
{
	assert_true(list_empty(&head));
	assert_null(LIST_FIRST(&head, struct item, link));
	list_add(&head, &items[2].link);
	list_add(&head, &items[3].link);
	list_add_front(&head, &items[1].link);
	list_insert(&items[3].link, &items[5].link);
	assert_int_equal(digits(&head), 1253);
	assert_ptr_equal(LIST_FIRST(&head, struct item, link), &items[1]);
	list_del(&items[2].link);
	list_del(&items[2].link); /* in no list: harmless */
	assert_int_equal(digits(&head), 153);
}

TEST(remove_while_walking)
{
	for (int i = 1; i < 6; i++)
		list_add(&head, &items[i].link);
	LIST_EACH (&head, at, next)
		if (LIST_ENTRY(at, struct item, link)->n % 2 == 0)
			list_del(at);
	assert_int_equal(digits(&head), 135);
}

TEST(splice)
{
	list_splice(&head, &other); /* nothing to nothing */
	assert_true(list_empty(&head));
	list_add(&other, &items[3].link);
	list_add(&other, &items[4].link);
	list_splice(&head, &other);
	assert_true(list_empty(&other));
	assert_int_equal(digits(&head), 34);
	list_add(&other, &items[5].link);
	list_splice(&head, &other);
	assert_int_equal(digits(&head), 345);
	list_splice(&head, &other);
	assert_int_equal(digits(&head), 345);
}

UNIT_GROUP(.before = setup);
