/* Random ids and names; see id.h.
 *
 * All randomness is getrandom's, which can only fail on a kernel without it or with a broken
 * pointer; ids would then repeat, although none may ever be reused, so the program stops
 * instead. */
#include "base/id.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>

#include "base/util.h"

#define SHORT_LEAST 6
#define SHORT_MOST  20

static const char hex[] = "0123456789abcdef";

void id_random(void *out, size_t len)
{
	char *at = out;

	while (len > 0) {
		ssize_t n = getrandom(at, len, 0);

		if (n < 0 && errno != EINTR) {
			perror("ava: getrandom");
			abort();
		}
		if (n > 0) {
			at += n;
			len -= (size_t)n;
		}
	}
}

/* The 32 digits of a random UUID (version 4, RFC 9562). */
static void uuid_digits(char out[32])
{
	unsigned char raw[16];

	id_random(raw, sizeof(raw));
	raw[6] = (unsigned char)((raw[6] & 0x0f) | 0x40);
	raw[8] = (unsigned char)((raw[8] & 0x3f) | 0x80);
	for (int i = 0; i < 16; i++) {
		out[2 * i] = hex[raw[i] >> 4];
		out[2 * i + 1] = hex[raw[i] & 15];
	}
}

struct session_id id_session(void)
{
	static const int group[] = {8, 4, 4, 4, 12};
	struct session_id id = {0};
	char digits[32], *to = id.text, *from = digits;

	uuid_digits(digits);
	for (int i = 0; i < 5; i++) {
		if (i > 0)
			*to++ = '-';
		memcpy(to, from, (size_t)group[i]);
		to += group[i];
		from += group[i];
	}
	return id;
}

void id_short(char prefix, bool (*taken)(const char *id, void *user), void *user, char out[24])
{
	char digits[32];

	out[0] = prefix;
	out[1] = '-';
	for (;;) {
		uuid_digits(digits);
		for (size_t n = SHORT_LEAST; n <= SHORT_MOST; n++) {
			memcpy(out + 2, digits, n);
			out[2 + n] = '\0';
			if (taken == NULL || !taken(out, user))
				return;
		}
	}
}

void id_trace_name(bool (*taken)(const char *name, void *user), void *user, struct trace_name *out)
{
	uint32_t r[2];
	const char *adjective, *noun;

	id_random(r, sizeof(r));
	adjective = names_adjectives[r[0] % names_nadjectives];
	noun = names_nouns[r[1] % names_nnouns];
	snprintf(out->text, sizeof(out->text), "%s-%s", adjective, noun);
	for (unsigned n = 2; taken != NULL && taken(out->text, user); n++)
		snprintf(out->text, sizeof(out->text), "%s-%s-%u", adjective, noun, n);
}

static bool id_is_short(const char *s, char prefix)
{
	size_t n;

	if (s == NULL || s[0] != prefix || s[1] != '-')
		return false;
	n = strspn(s + 2, hex);
	return s[2 + n] == '\0' && n >= SHORT_LEAST && n <= SHORT_MOST;
}

bool id_is_run(const char *s)
{
	return id_is_short(s, 'S');
}

bool id_is_proposal(const char *s)
{
	return id_is_short(s, 'P');
}

/* ---- Adjectives and animals for trace names.
 *
 * Words may be added at any time: a name once given stands in the files, never
 * its index. Nothing here can fail. */

/* clang-format off */
const char *const names_adjectives[] = {
	"able", "agile", "airy", "amber", "ample", "apt", "autumn", "azure", "balmy", "blithe",
	"bold", "bonny", "brave", "breezy", "bright", "brisk", "bubbly", "calm", "candid", "careful",
	"caring", "cheery", "civil", "clear", "clever", "cloudy", "cobalt", "copper", "coral", "cosy",
	"cool", "crisp", "curious", "dainty", "dapper", "daring", "dear", "deft", "dewy", "eager",
	"early", "earnest", "easy", "ebony", "elated", "elegant", "emerald", "even", "fair", "faithful",
	"fancy", "fearless", "festive", "fleet", "fluffy", "fond", "frank", "fresh", "friendly", "frosty",
	"gallant", "gentle", "giddy", "glad", "gleaming", "golden", "graceful", "grand", "grateful", "happy",
	"hardy", "hazel", "hearty", "helpful", "hidden", "honest", "humble", "indigo", "ivory", "jade",
	"jaunty", "jolly", "jovial", "joyful", "keen", "kind", "lavender", "lemon", "light", "lilac",
	"lively", "loyal", "lucid", "lucky", "lunar", "maple", "marine", "mellow", "merry", "mild",
	"mindful", "misty", "modest", "mossy", "neat", "nimble", "noble", "olive", "opal", "patient",
	"peachy", "pearly", "placid", "playful", "pleasant", "plucky", "polite", "proud", "prudent", "quick",
	"quiet", "rapid", "ready", "regal", "rosy", "ruby", "russet", "rustic", "sandy", "scarlet",
	"serene", "sharp", "silent", "silken", "silver", "sincere", "sleek", "smart", "snowy", "solar",
	"speedy", "spry", "stellar", "steady", "sturdy", "sunny", "supple", "swift", "tender", "tidy",
	"topaz", "tranquil", "trusty", "upbeat", "velvet", "vivid", "warm", "wise", "witty", "zesty",
};

const char *const names_nouns[] = {
	"alpaca", "antelope", "auk", "avocet", "badger", "barbet", "bat", "beagle", "bear", "beaver",
	"bee", "beetle", "bison", "bittern", "bluebird", "bobcat", "bongo", "buffalo", "bunting", "camel",
	"canary", "capybara", "caribou", "cat", "cheetah", "chickadee", "chipmunk", "cicada", "civet", "clam",
	"cod", "collie", "condor", "coot", "coyote", "crab", "crane", "cricket", "crow", "cuckoo",
	"curlew", "deer", "dingo", "dipper", "dolphin", "donkey", "dormouse", "dove", "dragonfly", "duck",
	"dunlin", "eagle", "eel", "egret", "eland", "elk", "emu", "ermine", "falcon", "fawn",
	"ferret", "finch", "firefly", "flamingo", "fox", "frog", "gannet", "gazelle", "gecko", "gibbon",
	"giraffe", "gnu", "goat", "goldfinch", "goose", "grebe", "grouse", "gull", "hamster", "hare",
	"hawk", "hedgehog", "heron", "herring", "hippo", "hoopoe", "hornbill", "horse", "hound", "ibex",
	"ibis", "iguana", "impala", "jackdaw", "jaguar", "jay", "kestrel", "kingfisher", "kite", "kiwi",
	"koala", "kudu", "ladybird", "lamb", "lapwing", "lark", "lemming", "lemur", "leopard", "linnet",
	"lion", "lizard", "llama", "lobster", "loon", "lynx", "macaw", "magpie", "mallard", "manatee",
	"marlin", "marmot", "marten", "meerkat", "merlin", "mink", "mole", "moose", "moth", "mouse",
	"narwhal", "newt", "nightjar", "ocelot", "octopus", "okapi", "oriole", "osprey", "otter", "owl",
	"panda", "panther", "parrot", "pelican", "penguin", "pheasant", "pigeon", "pika", "plover", "pony",
	"puffin", "puma", "quail", "rabbit", "raccoon", "raven", "reindeer", "robin", "salmon", "sandpiper",
	"seal", "sparrow", "squirrel", "starling", "stork", "swallow", "swan", "swift", "tapir", "tern",
	"thrush", "tiger", "toad", "toucan", "trout", "turtle", "vole", "walrus", "warbler", "wombat",
};
/* clang-format on */

const size_t names_nadjectives = ARRAY_LEN(names_adjectives);
const size_t names_nnouns = ARRAY_LEN(names_nouns);
