/* Adjectives and animals for trace names; see names.h.
 *
 * Words may be added at any time: a name once given stands in the files, never
 * its index. Nothing here can fail. */
#include "base/names.h"

#include "base/util.h"

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
