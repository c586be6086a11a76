/* Picking the main text of a page. */
#ifndef PAGE_PICK_H
#define PAGE_PICK_H

struct tree;

/* Mark nodes outside of the main text as MARK_LEFT_OUT (outermost ones alone), by the rules in
 * doc/PAGES.md, "The main text"; all is kept where no page would remain. 0 or AVA_ENOMEM. */
int pick_main(struct tree *t);

#endif
