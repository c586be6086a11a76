/* Which part of a page is what it is about. */
#ifndef PAGE_PICK_H
#define PAGE_PICK_H

struct tree;

/* Marks what is not the main text as MARK_LEFT_OUT (outermost nodes alone). What the marks are
 * decided by is said in doc/PAGES.md, "The main text"; all is kept where leaving out would leave
 * no page. 0 or AVA_ENOMEM. */
int pick_main(struct tree *t);

#endif
