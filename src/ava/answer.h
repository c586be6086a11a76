/* What a person meant. Plain yes and no for now; everything else is asked
 * again. Pure. */
#ifndef AVA_ANSWER_H
#define AVA_ANSWER_H

enum answer { ANSWER_YES, ANSWER_NO, ANSWER_UNCLEAR };

enum answer answer_parse(const char *text);

#endif
