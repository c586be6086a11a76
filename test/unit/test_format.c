/* Figures and names as people read them. Those of limits stand in test_words.c. */
#include "unit.h"

#include "base/format.h"

TEST(numbers)
{
	assert_string_equal(format_money(-1).text, "cost unknown");
	assert_string_equal(format_money(0).text, "$0.00");
	assert_string_equal(format_money(1).text, "<$0.01");
	assert_string_equal(format_money(4999).text, "<$0.01");
	assert_string_equal(format_money(5000).text, "$0.01");
	assert_string_equal(format_money(240000).text, "$0.24");
	assert_string_equal(format_money(995000).text, "$1.00");
	assert_string_equal(format_money(12345678901).text, "$12345.68");
	assert_string_equal(format_seconds(180499).text, "180s");
	assert_string_equal(format_seconds(449).text, "0.4s");
	assert_string_equal(format_seconds(40).text, "0s");
	assert_string_equal(format_seconds(960).text, "1s");
	assert_string_equal(format_seconds(9940).text, "9.9s");
	assert_string_equal(format_seconds(9950).text, "10s");
	assert_string_equal(format_ms(12).text, "12 ms");
	assert_string_equal(format_ms(1999).text, "1.9 s");
	assert_string_equal(format_tokens(999).text, "999");
	assert_string_equal(format_tokens(1234).text, "1.2k");
	assert_string_equal(format_tokens(12345).text, "12k");
	assert_string_equal(format_tokens(3400000).text, "3.4M");
	assert_string_equal(format_bytes(1023).text, "1023 B");
	assert_string_equal(format_bytes(1024).text, "1.0 KB");
	assert_string_equal(format_bytes(20 << 20).text, "20 MB");
	assert_string_equal(format_role("web_crawler").text, "WebCrawler");
	assert_string_equal(format_role("my-own_role").text, "MyOwnRole");
	assert_string_equal(format_role("").text, "");
}
