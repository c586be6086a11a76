/* Phrasings of people, and the role each shall be proposed. */
#include "unit.h"

#include <string.h>

#include "base/util.h"
#include "provider/dialect.h"

#define CODE "code_reviewer"
#define DATA "data_extractor"
#define WEB  "web_crawler"
#define RES  "researcher"

static const struct {
	const char *task, *role;
} cases[] = {
	{"Review src/journal/commit.c for bugs", CODE},
	{"please review this PR", CODE},
	{"Where is the fsync of the journal implemented?", CODE},
	{"Find all callers of err_wrap", CODE},
	{"find the bug in the parser", CODE},
	{"Refactor the buffer code", CODE},
	{"Which function opens the socket?", CODE},
	{"how does this codebase handle errors", CODE},
	{"List every TODO in the repository", CODE},
	{"why does main() crash at start", CODE},
	{"Is there a memory leak in the HTTP server?", CODE},
	{"check for a deadlock between the two mutexes", CODE},
	{"explain what agent_run() does", CODE},
	{"What does journal::commit do?", CODE},
	{"Are the unit tests of the lock complete?", CODE},
	{"look at server.py and tell me what is wrong", CODE},
	{"audit index.ts and app.tsx", CODE},
	{"find dead code in the module loader", CODE},
	{"which header defines struct turn", CODE},
	{"segfault when I press ctrl-c", CODE},
	{"review the last commit", CODE},
	{"does the CSV parser have a bug?", CODE},
	{"find unchecked malloc calls", CODE},
	{"what macros are in util.h", CODE},
	{"compile errors with clang, what is the cause", CODE},
	{"Where is the retry limit declared and which methods read it", CODE},

	{"Extract all invoice numbers from the PDFs", DATA},
	{"extract the prices from https://shop.example.com", DATA},
	{"Turn this page into a CSV with columns name and price", DATA},
	{"make a table of the fields in report.pdf", DATA},
	{"Pull the rows of sales.xlsx into JSON", DATA},
	{"extract emails", DATA},
	{"scrape the table of medals into a spreadsheet", DATA},
	{"parse data.csv and sum the second column", DATA},
	{"Convert the receipts into structured records", DATA},
	{"give me tabular output of the metrics in stats.tsv", DATA},
	{"Extract function names and their fields from the table", DATA},

	{"Research competitor pricing for podcast transcription services", WEB},
	{"Crawl example.com and list its pages", WEB},
	{"What does otter.ai cost?", WEB},
	{"read https://news.example.org/today and sum it up", WEB},
	{"Compare the pricing of three CRM vendors", WEB},
	{"find the website of the museum", WEB},
	{"browse the web for cheap flights", WEB},
	{"check www.example.com for broken links", WEB},
	{"What do online shops charge for a kilo of coffee?", WEB},
	{"latest news about the election", WEB},
	{"who are our competitors?", WEB},
	{"subscription prices of streaming products", WEB},
	{"look on the internet for reviews of this phone", WEB},
	{"HTTP://EXAMPLE.COM/PRICING please", WEB},

	{"Research the history of the transistor", RES},
	{"What are the pros and cons of nuclear power?", RES},
	{"summarize the literature on sleep", RES},
	{"Why is the sky blue?", RES},
	{"find papers on consensus", RES},
	{"Give me background on the treaty of Westphalia", RES},
	{"hello", RES},
	{"", RES},
	{"   ", RES},
	{"compare Rome and Athens", RES},
	{"Explain entropy", RES},
	{"what do studies say about coffee", RES},
	{"Investigate why the deal failed", RES},
	{"\xff\xfe\x00", RES},
	{"Écris un résumé", RES},
	{"42", RES},
	{"evidence for and against the theory", RES},
};

TEST(classify)
{
	int wrong = 0;

	assert_true(ARRAY_LEN(cases) >= 60);
	for (size_t i = 0; i < ARRAY_LEN(cases); i++) {
		const char *role = classify_role(cases[i].task, strlen(cases[i].task));

		if (strcmp(role, cases[i].role) != 0) {
			print_message("\"%s\": %s, not %s\n", cases[i].task, role, cases[i].role);
			wrong++;
		}
	}
	assert_int_equal(wrong, 0);
}

/* It reads no further than it is told to, and stops at a bound. */
TEST(bounds)
{
	static char text[200000];

	assert_string_equal(classify_role("review codebase", 0), RES);
	assert_string_equal(classify_role("cod\0e", 5), RES);
	assert_string_equal(classify_role("why review", 3), RES);
	memset(text, ' ', sizeof(text));
	memcpy(text + sizeof(text) - 8, "codebase", 8);
	assert_string_equal(classify_role(text, sizeof(text)), RES);
	memset(text, '.', sizeof(text));
	assert_string_equal(classify_role(text, sizeof(text)), RES);
	memset(text, 'a', sizeof(text));
	assert_string_equal(classify_role(text, sizeof(text)), RES);
}
